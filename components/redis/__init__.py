"""Redis, in which the GCS of a RayCluster stores its tables."""
