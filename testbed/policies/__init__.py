"""Objects that meet and violate each policy, and the verdicts of the rules."""
