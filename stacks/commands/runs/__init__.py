"""`ray-platform runs`: what the run histories of a stack's tenants have."""
