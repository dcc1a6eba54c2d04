"""`python -m local.plugins.language ENGINE_ADDRESS`: serves one engine until it is done or gone."""

import argparse
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import language_pb2_grpc

from local.plugins.language.host import LanguageHost
from local.plugins.messages import MESSAGE_OPTIONS
from local.plugins.stop import Stop

ENGINE_CHECK_SECONDS = 5.0


def watch_engine(address: str, stop: Stop) -> None:
    """Sets `stop` once the engine does not answer, so that a killed engine leaves no host and no program behind.

    Asks for gRPC's standard health service; an engine without it answers UNIMPLEMENTED, so it exists.
    """
    with grpc.insecure_channel(address) as channel:
        check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
        while not stop.wait(ENGINE_CHECK_SECONDS):
            try:
                check(b"", timeout=ENGINE_CHECK_SECONDS)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.UNAVAILABLE:
                    stop.set()


def main() -> None:
    """Prints the port on the first line of standard output, as the engine expects of every plugin, and serves."""
    parser = argparse.ArgumentParser(prog="pulumi-language-python", description=__doc__)
    parser.add_argument("engine", nargs="?", default="", help="address of the engine; without it the engine attaches")
    parser.add_argument("--tracing", default="", help="address to send traces to (not supported, ignored)")
    parser.add_argument("--logtostderr", action="store_true", help="taken for compatibility")
    parser.add_argument("-v", type=int, default=0, help="taken for compatibility")
    arguments = parser.parse_args()

    # The launcher put the checkout in front of PYTHONPATH; programs get the user's value.
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)[1:]
    os.environ.pop("PYTHONPATH", None)
    if inherited:
        os.environ["PYTHONPATH"] = os.pathsep.join(inherited)

    stop = Stop()
    host = LanguageHost(arguments.engine)
    # Every plugin in Python occupies a thread while it runs.
    server = grpc.server(ThreadPoolExecutor(max_workers=64), options=MESSAGE_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)

    if arguments.engine:
        threading.Thread(target=watch_engine, args=(arguments.engine, stop), daemon=True).start()
    stop.wait()
    host.processes.cancel()
    server.stop(grace=None).wait()


if __name__ == "__main__":
    main()
