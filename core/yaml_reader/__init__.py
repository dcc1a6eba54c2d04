"""Reads a stack file as YAML: its values as Pulumi parses them, with their lines and columns."""
