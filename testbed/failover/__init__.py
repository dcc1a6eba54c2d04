"""Redis beneath Ray at work, and how it is lost."""
