"""A stack file as YAML: where each value stands, and what Pulumi makes of it."""
