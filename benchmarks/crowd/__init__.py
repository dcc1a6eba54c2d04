"""Cost of commands in a cluster that is full of objects of others."""
