"""Benchmarks: the cost of the program, compared with alternatives in the same run."""
