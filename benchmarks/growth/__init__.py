"""`python -m benchmarks.growth`: what commands cost for each tenant of small and large stacks."""
