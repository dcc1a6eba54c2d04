"""A gateway between Ray's GCS and Redis whose client connections outlive the failover of a master.

It runs beside the head, with Ray's image: `python -m redis_gateway`. docs/redis-gateway.md describes its behavior,
docs/decisions/0011-redis-gateway.md why it exists.
"""
