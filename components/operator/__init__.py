"""The KubeRay operator."""
