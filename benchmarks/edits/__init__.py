"""Edits RayClusters at random while Ray's autoscalers play beside, and counts which busy workers are lost."""
