"""What an edit of a stack file does to running objects, object by object."""
