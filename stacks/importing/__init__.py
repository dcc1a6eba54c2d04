"""What people have, turned into clusters of a stack file: Ray's cluster launcher files and KubeRay's manifests."""
