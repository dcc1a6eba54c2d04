"""Writes a stack as plain manifests, for Argo CD, Flux or kubectl."""
