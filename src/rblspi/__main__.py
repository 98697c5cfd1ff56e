"""``python -m rblspi`` is the command ``rblspi``."""

from rblspi.cli import main

main()
