"""Component resources, a folder for each concept.

Each has settings (the keys of the stack file), manifests (the rendered objects) and component (the Pulumi resources).
"""
