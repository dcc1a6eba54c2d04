"""Tests of `python -m stacks runs`."""
