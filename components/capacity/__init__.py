"""Whether pods find room: nodes as the stack file says them, and what is placed on them."""
