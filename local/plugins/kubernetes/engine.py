"""The engine's log: lines that stay, and the status shown beside a resource while it is worked on."""

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from local.plugins.messages import MESSAGE_OPTIONS


class Engine:
    """The engine that started this plugin; without an address what would be logged is dropped."""

    def __init__(self, address: str | None) -> None:
        self._channel = grpc.insecure_channel(address, options=MESSAGE_OPTIONS) if address else None
        self._stub = engine_pb2_grpc.EngineStub(self._channel) if self._channel else None

    def warn(self, urn: str, message: str) -> None:
        self._log(urn, message, engine_pb2.WARNING)

    def info(self, urn: str, message: str) -> None:
        self._log(urn, message, engine_pb2.INFO)

    def status(self, urn: str, message: str) -> None:
        """Show what is being waited for; an empty message clears it."""
        self._log(urn, message, engine_pb2.INFO, ephemeral=True)

    def gone(self) -> bool:
        """Whether the engine answers no more, so that a killed one leaves no plugin behind.

        Asks gRPC's standard health service; an engine without one answers that it is not implemented, so it is there.
        """
        if self._channel is None:
            return False
        check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            check(b"", timeout=5)
        except grpc.RpcError as error:
            return bool(error.code() == grpc.StatusCode.UNAVAILABLE)
        return False

    def _log(self, urn: str, message: str, severity: engine_pb2.LogSeverity.ValueType, ephemeral: bool = False) -> None:
        if self._stub is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=message, urn=urn, ephemeral=ephemeral)
        try:
            self._stub.Log(request, timeout=10)
        except grpc.RpcError:
            # The engine goes away first when a run is interrupted; a lost line of the log must not fail the operation.
            return
