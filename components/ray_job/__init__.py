"""RayJobs: what they run, on which cluster, and how they are provisioned."""
