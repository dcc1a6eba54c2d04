"""What is known of a tenant's jobs after their clusters and RayJobs are gone: a program in the cluster keeps it."""
