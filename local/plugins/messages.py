"""The largest message between the engine and a plugin."""

_LARGEST = 400 * 1024 * 1024
"""Bytes, as in the engine itself (pulumi sdk/go/common/util/rpcutil/serve.go). gRPC's default (4 MiB) is less than some
objects, and a policy pack gets all resources of a stack in one message."""

MESSAGE_OPTIONS = (
    ("grpc.max_receive_message_length", _LARGEST),
    ("grpc.max_send_message_length", _LARGEST),
)
"""For channels and servers of gRPC."""
