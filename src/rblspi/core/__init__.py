"""What every other package builds on: compiled code, linear algebra, checks, files, progress."""
