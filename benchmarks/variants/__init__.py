"""GPU-hours that workers hold compared with those that jobs use, by worker sizes, with Ray's own scheduler."""
