"""Redis failures while Ray works."""
