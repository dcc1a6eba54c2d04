"""`python -m benchmarks.check`: how long a check of a large stack file takes."""
