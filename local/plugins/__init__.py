"""Stand-ins for Pulumi's own plugins, for machines that cannot download these, and the choice between the two."""

from local.plugins.selection import Mode, Plugin, Selection, prepare_home, select

__all__ = ["Mode", "Plugin", "Selection", "prepare_home", "select"]
