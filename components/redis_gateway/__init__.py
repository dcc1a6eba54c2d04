"""The Redis gateway beside the head of a RayCluster: it keeps the GCS's connection to Redis open over a failover."""
