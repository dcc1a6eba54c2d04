"""Converts Ray's cluster launcher files and KubeRay's manifests into clusters of a stack file."""
