"""A gateway between Ray's GCS and Redis whose client connections outlive the failover of a master.

A program of its own, for a container image of its own: it imports nothing else of this project.
`docs/redis-gateway.md` says how it behaves, `docs/decisions/0011-redis-gateway.md` why it exists.
"""
