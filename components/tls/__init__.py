"""TLS between the processes of a RayCluster: each pod has a certificate of the cluster's own authority."""
