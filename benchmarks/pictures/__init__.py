"""Pictures of the live page for docs/."""
