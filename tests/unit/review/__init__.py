"""`python -m stacks review`."""
