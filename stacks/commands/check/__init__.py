"""Validates stack files without Pulumi and without a cluster."""
