"""What the rules of policies/ say of KubeRay's samples and ado's manifests, as a table."""
