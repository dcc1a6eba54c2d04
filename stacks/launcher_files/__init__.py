"""Files of Ray's cluster launcher (`ray up`) as clusters of a stack file: for `configuration`, and for `import`."""
