"""What to run, run it, keep it, sum it up: the paper's figures and claims are data.

A reader follows the modules in this order: `definitions` (what a curve and a figure are), `paper`
and `toml` (which ones there are), `tasks` (one run), `runner` (many), `store` (kept), `summary`
(numbers over runs), `results` (a figure's numbers), `claims` (what the paper says of them).
"""
