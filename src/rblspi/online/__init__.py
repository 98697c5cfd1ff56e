"""Agents that learn online, one file for each algorithm."""
