"""A stack at its real size on a rehearsal cluster of its own, and what became of it beside what its plan predicted."""
