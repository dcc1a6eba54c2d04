"""Rules between the parts of a stack file, and advice on it. Pure functions."""
