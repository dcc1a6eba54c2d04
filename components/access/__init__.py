"""Who may do what inside a tenant's namespace."""
