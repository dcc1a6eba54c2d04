"""Settings of Pulumi's engine."""

STATE_AT_END = {"PULUMI_SKIP_CHECKPOINTS": "true"}
"""Environment of a command that writes the state at its end, not at every step: a kill would lose what it has done.

Also of previews. They write no state, but the engine prepares it for writing at every step all the same (pulumi 3.276,
pkg/backend/snapshot.go, DiscardPersister).
"""
