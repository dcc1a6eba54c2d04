"""Stack files that are right, in `good`, and that each break one rule, in `bad`."""
