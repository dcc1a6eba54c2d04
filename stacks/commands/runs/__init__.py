"""`python -m stacks runs`: what the run histories of a stack's tenants have."""
