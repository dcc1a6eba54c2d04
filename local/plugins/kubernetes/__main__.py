"""`python -m local.plugins.kubernetes ENGINE_ADDRESS`: serves one engine until it is done or gone."""

import argparse
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from local.plugins.kubernetes.engine import Engine
from local.plugins.kubernetes.provider import Provider
from local.plugins.messages import MESSAGE_OPTIONS
from local.plugins.stop import Stop

_THREADS = 256
"""The number of operations that wait at the same time; one more thread is reserved for the engine's Cancel."""

_ENGINE_CHECK_SECONDS = 5.0


def main() -> None:
    """Prints the port on the first line of standard output, as the engine expects of every plugin, and serves."""
    parser = argparse.ArgumentParser(prog="pulumi-resource-kubernetes", description=__doc__)
    parser.add_argument("engine", nargs="?", default="", help="address of the engine's log service")
    parser.add_argument("--tracing", default="", help="taken for compatibility, ignored")
    parser.add_argument("--logtostderr", action="store_true", help="taken for compatibility, ignored")
    parser.add_argument("-v", type=int, default=0, help="taken for compatibility, ignored")
    arguments, _ = parser.parse_known_args()

    stop = Stop()
    engine = Engine(arguments.engine or None)
    provider = Provider(engine)
    server = grpc.server(ThreadPoolExecutor(max_workers=_THREADS), options=MESSAGE_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)

    while not stop.wait(_ENGINE_CHECK_SECONDS) and not engine.gone():
        pass
    provider.stop()
    server.stop(grace=1).wait()


if __name__ == "__main__":
    main()
