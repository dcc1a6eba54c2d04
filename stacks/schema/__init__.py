"""The JSON Schema of stack files, for editors, and the reference page that is made with it."""
