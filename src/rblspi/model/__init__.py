"""The mathematics: sufficient statistics, their buffer, and the posterior over weights."""
