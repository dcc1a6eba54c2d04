"""What every part of the program shares: types, problems, quantities, images, nodes, and the stack file as it is.

Nothing here knows KubeRay, a component or Pulumi.
"""
