"""Shared by all packages: types, problems, quantities, images, nodes, and the reader of stack files.

It depends on neither KubeRay nor a component nor Pulumi.
"""
