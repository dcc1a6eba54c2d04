"""The scripts of Redis' pods, with real servers."""
