"""Worker sizes, caps and idle timeouts from past jobs; offline, with a model of Ray's scheduler."""
