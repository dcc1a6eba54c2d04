"""A gateway between Ray's GCS and Redis whose client connections outlive the failover of a master.

A separate program with its own container image: it imports nothing else of this project. `docs/redis-gateway.md`
describes its behavior, `docs/decisions/0011-redis-gateway.md` why it exists.
"""
