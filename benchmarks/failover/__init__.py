"""Effects of losing the Redis master on users of Ray, with the gateway and without it."""
