"""Checking stack files by themselves, without Pulumi and without a cluster."""
