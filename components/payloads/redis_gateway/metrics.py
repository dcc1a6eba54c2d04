"""Metrics of the gateway for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

OUTAGE_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 3, 4, 5, 7.5, 10, 15, 30, 60, 120, 300)
"""Seconds. A failover takes 3 to 5 with down-after-milliseconds of Sentinel at 1.5 s."""


class Metrics:
    """All metrics of one gateway."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, help_: str) -> Counter:
            return Counter(f"redis_gateway_{name}", help_, registry=self.registry)

        def gauge(name: str, help_: str) -> Gauge:
            return Gauge(f"redis_gateway_{name}", help_, registry=self.registry)

        self.clients = gauge("clients", "Clients that are connected.")
        self.unanswered = gauge("unanswered_commands", "Commands that clients wait for.")
        self.held_bytes = gauge("held_bytes", "Bytes of those commands.")
        self.connected = gauge("connected_clients", "Clients that have a connection to the master.")
        self.outage = Histogram(
            "redis_gateway_held_seconds",
            "From losing the master to having one again, for each client.",
            buckets=OUTAGE_BUCKETS,
            registry=self.registry,
        )
        self.commands = Counter("redis_gateway_commands", "Commands accepted.", ["command"], registry=self.registry)
        self.refused = counter("refused_commands", "Commands that the gateway refuses.")
        self.masters = counter("master_changes", "Times that another node became the master.")
        self.found = counter(
            "found_writes", "Unanswered writes that the new master had done; answered from its journal."
        )
        self.replayed = counter("replayed_commands", "Commands sent again.")
        self.repaired = counter(
            "repaired_writes", "Of those: writes acknowledged before that the new master did not have."
        )
        self.lost = counter(
            "lost_writes", "Acknowledged writes that the new master did not have and that were not kept."
        )
        self.rescanned = counter("restarted_scans", "Scans restarted because their cursor was of another node.")
        self.unreplicated = counter("late_waits", "Times that too few replicas had the writes in time.")
        self.expired = counter("expired_commands", "Commands answered with an error after being held too long.")
        self.denied = counter("denied_clients", "Passwords that were not accepted from clients.")
