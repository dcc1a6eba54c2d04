"""Puts the state of one stack right after a command that was killed; see docs/decisions/0027-recovery.md."""
