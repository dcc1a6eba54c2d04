"""What of a stack runs now, and why something does not: its RayClusters, RayJobs, RayServices, queues and quotas."""
