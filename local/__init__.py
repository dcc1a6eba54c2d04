"""A whole Kubernetes on this machine to rehearse stacks on: real programs, simulated nodes, nothing installed."""
