"""The certificate of the nodes of a Redis, where no issuer of the cluster makes it."""

from typing import ClassVar

from ..tls.certificate import ServerCertificate


class NodesCertificate(ServerCertificate, module="ray-platform", name="NodesCertificate"):
    """A certificate for all nodes of a Redis, as servers and as each other's clients."""

    subject: ClassVar[str] = "ray-redis"
