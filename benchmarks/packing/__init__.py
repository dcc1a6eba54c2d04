"""Whole nodes that stay free while workers of 1, 2 and 4 GPUs start and end."""
