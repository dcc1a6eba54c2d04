"""Storage that the RayClusters of a tenant share: for models, data and results."""
