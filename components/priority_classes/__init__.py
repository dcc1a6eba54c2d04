"""PriorityClasses of Ray's pods: heads have a higher priority than workers."""
