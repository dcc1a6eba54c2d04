"""`ray-platform plan`: what a stack file needs of its nodes, and what past load would have needed."""
