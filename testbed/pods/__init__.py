"""The program on a real node, whose pods run Ray."""
