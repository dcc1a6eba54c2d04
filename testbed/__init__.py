"""Helpers of tests and benchmarks: the program on its own clusters, simulated users and autoscalers, real pods."""
