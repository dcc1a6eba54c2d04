"""The engine's log: permanent lines, and the status beside a resource during an operation."""

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from local.plugins.messages import MESSAGE_OPTIONS


class Engine:
    """The engine that started this plugin; without an address all messages are dropped."""

    def __init__(self, address: str | None) -> None:
        self._channel = grpc.insecure_channel(address, options=MESSAGE_OPTIONS) if address else None
        self._stub = engine_pb2_grpc.EngineStub(self._channel) if self._channel else None

    def warn(self, urn: str, message: str) -> None:
        self._log(urn, message, engine_pb2.WARNING)

    def info(self, urn: str, message: str) -> None:
        self._log(urn, message, engine_pb2.INFO)

    def status(self, urn: str, message: str) -> None:
        """Shows what an operation waits for; an empty message clears it."""
        self._log(urn, message, engine_pb2.INFO, ephemeral=True)

    def gone(self) -> bool:
        """Whether the engine does not answer any more, so that a killed engine leaves no plugin behind.

        Asks gRPC's standard health service; an engine without one answers that it is not implemented, so it exists.
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
            # The engine ends first when a run is interrupted; a lost log line must not fail the operation.
            return
