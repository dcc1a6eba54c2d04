"""Shows the settings of a stack file merged over its bases."""
