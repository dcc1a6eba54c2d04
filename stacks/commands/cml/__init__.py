"""Starts, stops and shows the Ray clusters of a stack on Cloudera ML."""
