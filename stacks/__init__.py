"""Stacks: the settings of a stack file as a whole, and the Pulumi resources that it describes."""
