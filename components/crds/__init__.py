"""CustomResourceDefinitions: of KubeRay, Volcano and Kueue, outside the state of Pulumi."""
