"""The engine of experiments: what to run, running it, storing it, summing it up.

Read the modules in this order: `definitions` (curves and figures as data), `config` (figures from
a TOML file), `tasks` (one run), `runner` (many runs), `results_store` (the file they are kept in),
`results` (the runs of a figure, and statistics over them), `judging` (verdicts on claims), and
`tables` (runs as CSV, for other programs and stores). `code_version` says whether stored runs
still belong to the present code.
"""
