"""Component resources, a folder for each concept.

In each: settings (what may be said), manifests (what it becomes) and component (how it is provisioned).
"""
