"""Component resources, a folder for each concept.

Each has settings (the keys of the stack file), manifests (the rendered objects; of a small concept in one file with the
keys) and component (the Pulumi resources).
"""
