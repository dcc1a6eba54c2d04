"""Adding live RayClusters to a stack."""
