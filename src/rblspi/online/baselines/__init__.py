"""Algorithms of others, to compare with: the paper's baseline and agents that explore deeply."""
