"""The laboratory of the paper: its figures and its claims as data, and the report on them.

A package beside `rblspi` that uses its public names, as any other package could. `command` is
``rblspi reproduce``, `figures` lists what to run, `claims` what the paper says and how each
statement is judged, `readings` what the paper leaves open, and `stated` the numbers in its text.
`chain` draws the one figure that does not consist of learning curves.
"""
