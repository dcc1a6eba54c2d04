"""What stands in for Pulumi's own plugins where they cannot be downloaded, and the choice between the two."""

from local.plugins.selection import Mode, Plugin, Selection, select

__all__ = ["Mode", "Plugin", "Selection", "select"]
