"""Capacity: the nodes of the stack file, and the placement of pods on them."""
