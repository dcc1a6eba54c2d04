"""Random edits of RayClusters in a stack file while autoscalers play beside, and what came of them."""
