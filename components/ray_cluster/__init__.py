"""RayClusters: a head and worker groups that the autoscaler scales."""
