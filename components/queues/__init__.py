"""Queues: shares of the cluster that RayClusters wait in, for Volcano or for Kueue."""
