"""Queues: shares of the cluster, in which RayClusters wait, for Volcano or for Kueue."""
