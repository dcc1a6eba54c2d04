"""An environment: one Pulumi stack, or several that are previewed and updated as one."""
