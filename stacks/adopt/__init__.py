"""Taking RayClusters that run already into a stack."""
