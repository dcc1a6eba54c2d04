"""The commands of `python -m stacks`, one in each file; heavy modules are imported only when a command runs."""
