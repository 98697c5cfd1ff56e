"""The reproduction of the paper: its figures and its claims as data, and the report on them."""
