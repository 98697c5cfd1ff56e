"""The engine of experiments: define, run, store and summarise them.

Read the modules in this order: `definitions` (curves and figures as data), `config` (figures from a
TOML file), `tasks` (one run), `runner` (many runs), `results_store` (the file they are kept in),
`results` (the runs of a figure, and statistics over them), `judging` (verdicts on claims), and
`tables` (runs as lines of JSON, for other programs and stores). `code_version` tells whether stored
runs were made by the present code.
"""
