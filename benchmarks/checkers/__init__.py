"""checkov, kube-score and the policies of this project over the same manifests."""
