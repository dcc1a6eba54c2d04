"""Redis with three nodes, the gateway and Ray: the effects of losing a master."""
