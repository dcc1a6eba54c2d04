"""Objects that keep and break each policy, and what the rules say of them."""
