"""Redis with three nodes, the gateway, and Ray on top: what is lost when a master is lost."""
