"""PriorityClasses of Ray's pods: a head goes before all workers."""
