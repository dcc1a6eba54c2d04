"""Queues: who may use how much of the cluster."""
