"""Metrics of RayClusters and of the platform: what Prometheus scrapes, what it records, and what it alerts to."""
