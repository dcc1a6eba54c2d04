"""`ray-platform run` and `cancel`: runs of job templates."""
