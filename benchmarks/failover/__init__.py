"""What users of Ray notice when masters of Redis are lost, with the gateway and without it."""
