"""Ray clusters made of Applications of Cloudera ML, whose nodes are found, started and drained through HTTPS alone."""
