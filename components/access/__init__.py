"""Access rights in the cluster and in tenants' namespaces."""
