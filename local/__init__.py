"""A Kubernetes cluster on this machine to rehearse stacks on: real programs, simulated nodes, nothing installed."""
