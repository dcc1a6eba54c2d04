"""Runs a stack at its real size on its own rehearsal cluster, and compares the result with the stack's plan."""
