"""Ray clusters that exist already, in another namespace or outside Kubernetes: their connection, and jobs on them."""
