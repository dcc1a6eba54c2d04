"""Repairs the state of a stack after a killed command; see docs/decisions/0027-recovery.md."""
