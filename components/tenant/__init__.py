"""Tenants: each has a namespace with a quota, and a guard against its accidental removal."""
