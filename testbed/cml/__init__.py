"""A local server of the paths of Cloudera ML's API v2 that the project uses. Its applications run real Ray, or a
simulated one for schedules of faults."""
