"""The objects that a stack consists of, and the values that they share. Pure functions."""
