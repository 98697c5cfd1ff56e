"""Algorithms from the literature, for comparison: the paper's baseline and deep exploration."""
