"""What an edit of a stack file does to what runs, object by object."""
