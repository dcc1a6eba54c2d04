"""Random edits of RayClusters in a stack file while simulated autoscalers run, and their results."""
