"""Stacks: what a stack file says as a whole, and the resources that make it so."""
