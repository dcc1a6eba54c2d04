"""A page of a stack: its plan, and with `--live` what of it runs now and what waits, on this machine's loopback."""
