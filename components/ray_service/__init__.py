"""RayServices: what they serve, on which cluster, and how they are provisioned."""
