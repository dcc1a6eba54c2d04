"""A provider for Pulumi's `kubernetes` package, for machines that cannot download Pulumi's own plugin.

It stands in for pulumi-resource-kubernetes 4.x in server-side apply mode and behaves as that plugin does where a
program can tell. What it does not do is listed in docs/stand-ins.md.
"""
