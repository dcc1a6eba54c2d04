"""Redis, in which the GCS of a RayCluster keeps its tables."""
