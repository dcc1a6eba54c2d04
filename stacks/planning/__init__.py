"""Whether a stack fits its nodes and budgets, and what of it can run at the same time; offline."""
