"""A table of the findings of policies/ in KubeRay's samples and ado's manifests."""
