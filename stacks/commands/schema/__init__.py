"""The JSON Schema of stack files, for editors, and the reference page that is generated with it."""
