"""What an environment of several Pulumi stacks costs as it grows."""
