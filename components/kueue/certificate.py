"""The certificate of Kueue's webhook: made once, its key a secret of Pulumi.

Kueue keeps certificates itself (internalCertManagement), and makes none where it finds one that is good: one that
stands for its authority, too, with a key of RSA (cert-controller, pkg/rotator/rotator.go: refreshCertIfNeeded and
buildArtifactsFromSecret).
"""

from typing import ClassVar

from ..tls.certificate import ServerCertificate


class KueueCertificate(ServerCertificate, module="ray-platform", name="KueueCertificate"):
    """A certificate of the webhook and its key, good for ten years. Kueue then makes others."""

    subject: ClassVar[str] = "ray-platform-kueue"
    with_rsa: ClassVar[bool] = True
