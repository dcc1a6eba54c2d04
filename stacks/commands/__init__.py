"""The commands of `ray-platform`, a folder for each."""
