"""Edits RayClusters at random while Ray's autoscalers scale them, and counts the busy workers that are lost."""
