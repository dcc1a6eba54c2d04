"""Tenants: a namespace each, what it may use, and what keeps it from being removed by accident."""
