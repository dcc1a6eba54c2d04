"""GPU-hours that workers hold beside those that jobs use, by how nodes are cut; Ray's own scheduler decides."""
