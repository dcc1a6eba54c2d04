"""What the program costs, measured against what one would do without it, in the same run."""
