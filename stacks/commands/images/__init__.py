"""Lists the images and the manifests that a stack uses, for mirrors and for reviews."""
