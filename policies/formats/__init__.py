"""Reports as they are written: for a terminal, for programs, and for pull requests."""
