"""RayClusters: a head and worker groups that the autoscaler adds and takes away."""
