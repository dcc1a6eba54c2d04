"""A Prometheus of the rehearsal, with the targets and the rules that the stack has for an existing one."""
