"""`python -m stacks run` and `cancel`: runs of job templates."""
