"""The choice between the plugins of the user's Pulumi and ours, and the stand-in for its language host."""

from local.plugins.selection import Mode, Plugin, Selection, prepare_home, select

__all__ = ["Mode", "Plugin", "Selection", "prepare_home", "select"]
