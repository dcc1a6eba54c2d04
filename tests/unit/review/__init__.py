"""`ray-platform review`."""
