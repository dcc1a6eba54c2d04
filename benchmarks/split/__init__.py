"""Cost of an environment of several Pulumi stacks by its size."""
