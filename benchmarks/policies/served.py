"""Starts and calls the pack as the engine does, without the engine, to measure only the pack."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import psutil
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc

from local import paths


@dataclass(frozen=True)
class Took:
    """Seconds of the pack's process."""

    wall: float
    cpu: float


def asked(bodies: Iterable[Mapping[str, Any]]) -> dict[str, Took]:
    """Time of the start, of all calls for single resources, and of the call for the stack."""
    requests = [_request(number, each) for number, each in enumerate(bodies)]
    together = analyzer_pb2.AnalyzeStackRequest(
        resources=[
            analyzer_pb2.AnalyzerResource(urn=each.urn, type=each.type, properties=each.properties) for each in requests
        ]
    )
    took = {}
    with _started() as (pack, process, begun):
        pack.GetAnalyzerInfo(empty_pb2.Empty())
        took["start"] = Took(time.perf_counter() - begun, _cpu(process))

        def each_alone() -> None:
            for request in requests:
                _remedied(pack, request)
                pack.Analyze(request)

        took["resources"] = _timed(process, each_alone)
        took["stack"] = _timed(process, lambda: pack.AnalyzeStack(together))
    return took


def _request(number: int, body: Mapping[str, Any]) -> analyzer_pb2.AnalyzeRequest:
    properties = struct_pb2.Struct()
    properties.update(body)
    version = body["apiVersion"] if "/" in body["apiVersion"] else f"core/{body['apiVersion']}"
    type_ = f"kubernetes:{version}:{body['kind']}"
    return analyzer_pb2.AnalyzeRequest(type=type_, urn=f"urn:{number}", name=f"it-{number}", properties=properties)


def _remedied(pack: Any, request: analyzer_pb2.AnalyzeRequest) -> None:
    try:
        pack.Remediate(request)
    except grpc.RpcError as error:
        # As in the engine, which calls every pack (pulumi sdk/go/common/resource/plugin/analyzer_plugin.go: Remediate).
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            raise


@contextmanager
def _started() -> Iterator[tuple[Any, psutil.Process, float]]:
    command = [sys.executable, "-u", "-m", "pulumi.policy", "127.0.0.1:1", str(paths.ROOT / "policies")]
    begun = time.perf_counter()
    environment = {**os.environ, "PULUMI_STACK": "benchmark"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as it:
        try:
            assert it.stdout is not None
            with grpc.insecure_channel(f"127.0.0.1:{int(it.stdout.readline())}") as channel:
                yield analyzer_pb2_grpc.AnalyzerStub(channel), psutil.Process(it.pid), begun
        finally:
            it.kill()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _timed(process: psutil.Process, work: Callable[[], object]) -> Took:
    before, begun = _cpu(process), time.perf_counter()
    work()
    return Took(time.perf_counter() - begun, _cpu(process) - before)
