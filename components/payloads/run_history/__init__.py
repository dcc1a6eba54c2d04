"""The program of the run history. It runs in a pod of a tenant's namespace with the Python of Ray's image.

It uses the standard library and PyYAML, which Ray itself needs, with Python 3.9 or newer: Ray's images have no client
of Kubernetes. Its argument is JSON, the fields of `configured.Configured`.
"""

NAME = "ray-run-history"
"""Name of the StatefulSet, of its ServiceAccount and of its container."""

PORT = 8787
"""Where it answers, on the pod's loopback address alone: nothing reaches it but a port-forward."""
