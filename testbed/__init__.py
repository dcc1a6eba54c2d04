"""What tests and benchmarks work with: the program on clusters of their own, people and autoscalers, real pods."""
