"""The commands of `python -m stacks`, a folder for each."""
