"""The Redis gateway beside the head of a RayCluster: it holds the GCS's connection to Redis over a failover."""
