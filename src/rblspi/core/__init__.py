"""The foundation of every other package: compiled code, linear algebra, checks, files, progress."""
