"""A proxy between the engine and a policy pack, for the time until the pack can be started.

A policy pack in Python (pulumi_policy) reads the stack's name, project and configuration from its environment when it
starts. But the engine only reports them later, by ConfigureStack. So the engine gets the port of this proxy, the pack
is started after ConfigureStack, and from then on the proxy forwards every call unchanged.
"""

from __future__ import annotations  # gRPC's types are generic for the type checker only

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import analyzer_pb2

from local.plugins.language.errors import HostError
from local.plugins.messages import MESSAGE_OPTIONS

_Call = Callable[[bytes, grpc.ServicerContext], bytes]


class PolicyPack(grpc.GenericRpcHandler):
    """A server of `pulumirpc.Analyzer` that answers Handshake and ConfigureStack itself."""

    def __init__(self) -> None:
        self._called = threading.Event()
        self._stack: analyzer_pb2.AnalyzerStackConfigureRequest | None = None
        self._pack: Future[grpc.Channel] = Future()
        self._first_line = b""
        self._server = grpc.server(ThreadPoolExecutor(max_workers=64), options=MESSAGE_OPTIONS)
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
        """gRPC's hook: the handler of a call; all calls of the service are unary."""
        method = handler_call_details.method
        answers: dict[str, _Call] = {
            "Handshake": lambda request, context: analyzer_pb2.AnalyzerHandshakeResponse().SerializeToString(),
            "ConfigureStack": self._configure_stack,
        }

        def forward(request: bytes, context: grpc.ServicerContext) -> bytes:
            return self._forward(method, request, context)

        return grpc.unary_unary_rpc_method_handler(answers.get(method.rpartition("/")[2], forward))

    def await_environment(self, context: grpc.ServicerContext) -> dict[str, str]:
        """The pack's environment, available once the engine has called ConfigureStack or any other method.

        Raises:
            HostError: the engine cancelled first.
        """
        context.add_callback(self._called.set)
        self._called.wait()
        if not context.is_active():
            raise HostError("the engine closed the policy pack before it was started")
        stack = self._stack
        if stack is None:
            return {}
        return {
            "PULUMI_ORGANIZATION": stack.organization,
            "PULUMI_PROJECT": stack.project,
            "PULUMI_STACK": stack.stack,
            "PULUMI_DRY_RUN": str(stack.dry_run).lower(),
            "PULUMI_CONFIG": json.dumps(dict(stack.config)),
        }

    def attach(self, output: bytes) -> bytes:
        """Reads the pack's port from the first line of its output; returns the rest of the output.

        Raises:
            HostError: its first line is something else.
        """
        if self._pack.done():
            return output
        self._first_line += output
        port, newline, rest = self._first_line.partition(b"\n")
        if not newline:
            return b""
        if not port.strip().isdigit():
            error = HostError(f"the policy pack printed {port.decode(errors='replace')!r} before its port was known")
            self._pack.set_exception(error)
            raise error
        self._pack.set_result(grpc.insecure_channel(f"127.0.0.1:{int(port)}", options=MESSAGE_OPTIONS))
        return rest

    def close(self) -> None:
        """Ends the proxy after the pack has ended."""
        if not self._pack.done():
            self._pack.set_exception(HostError("the policy pack ended before it was ready"))
        elif self._pack.exception() is None:
            self._pack.result().close()
        self._server.stop(grace=1)

    def _configure_stack(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._stack = analyzer_pb2.AnalyzerStackConfigureRequest.FromString(request)
        self._called.set()
        return analyzer_pb2.AnalyzerStackConfigureResponse().SerializeToString()

    def _forward(self, method: str, request: bytes, context: grpc.ServicerContext) -> bytes:
        self._called.set()  # `pulumi policy publish` asks without a stack
        try:
            call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._pack.result().unary_unary(method)
            answer = call(request)
        except HostError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        except grpc.RpcError as error:
            context.abort(error.code(), error.details() or "")
        return answer
