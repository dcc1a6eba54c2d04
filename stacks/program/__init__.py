"""What runs under Pulumi: the resources of a stack and their outputs."""
