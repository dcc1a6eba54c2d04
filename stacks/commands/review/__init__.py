"""One comment for a pull request: what it does to each stack that it touches."""
