"""Sizes of workers, caps and idle timeouts from jobs that were; offline, with a model of Ray's scheduler."""
