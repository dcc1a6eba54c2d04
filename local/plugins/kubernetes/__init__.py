"""A provider for Pulumi's `kubernetes` package, for machines that cannot download Pulumi's own plugin.

It replaces pulumi-resource-kubernetes 4.x in server-side apply mode and behaves like that plugin as far as a program
can observe. docs/stand-ins.md lists what it does not support.
"""
