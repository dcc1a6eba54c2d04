"""`python -m benchmarks.growth`: cost of commands per tenant, for small and large stacks."""
