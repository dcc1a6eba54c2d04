"""Lines of logs with secrets, each as it has to leave the pod. The secrets are made as their publishers make them."""

import base64
import secrets
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from ray._private.authentication.authentication_token_generator import generate_new_authentication_token


@dataclass(frozen=True)
class Logged:
    """A record, what is left of it, and its secret."""

    text: str
    masked: str
    secret: str


OF_RAY = str(generate_new_authentication_token())

OF_KUBERAY = base64.b64encode(secrets.token_bytes(32)).decode()
"""As KubeRay generates it (raycluster_controller.go: generateRandomToken)."""

_HUGGING_FACE = "hf_" + "".join(secrets.choice("abcdefghijklmnopqrstuvwxyzABCDEFGH") for _ in range(34))

_AWS = "AKIA" + "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16))

_AWS_SECRET = base64.b64encode(secrets.token_bytes(30)).decode()

_RANDOM = secrets.token_hex(20)

_PUBLISHED = (
    f"nvapi-{_RANDOM}{_RANDOM}",
    f"npm_{_RANDOM[:36]}",
    f"pypi-{_RANDOM}{_RANDOM}",
    f"dckr_pat_{_RANDOM[:27]}",
    f"ya29.{_RANDOM}",
    f"ghp_{_RANDOM[:36]}",
    f"github_pat_{_RANDOM}{_RANDOM[:19]}_{_RANDOM}",
    f"glpat-{_RANDOM[:20]}",
    f"sk-proj-{_RANDOM}",
    f"sk-ant-api03-{_RANDOM}",
    f"AIza{_RANDOM[:35]}",
    f"xoxb-{_RANDOM[:12]}-{_RANDOM[:24]}",
)
"""Of NVIDIA, npm, PyPI, Docker, Google, GitHub (two), GitLab, OpenAI, Anthropic, Google and Slack, as long as they are
there."""

_JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"RS256","kid":"k"}', b'{"iss":"kubernetes/serviceaccount"}', secrets.token_bytes(32))
)


def _pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey, form: PrivateFormat) -> str:
    return key.private_bytes(Encoding.PEM, form, NoEncryption()).decode().strip()


KEYS = (
    _pem(rsa.generate_private_key(65537, 2048), PrivateFormat.PKCS8),
    _pem(ec.generate_private_key(ec.SECP256R1()), PrivateFormat.TraditionalOpenSSL),
    _pem(ed25519.Ed25519PrivateKey.generate(), PrivateFormat.OpenSSH),
)

ONE_LINE = (
    Logged(f"the token is {OF_RAY}", "the token is ***", OF_RAY),
    # Letters that `(?i)` of RE2 takes for an s and a k.
    Logged("\u017fecret=hunter2", "\u017fecret=***", "hunter2"),
    Logged("api_\u212aey=hunter2", "api_\u212aey=***", "hunter2"),
    Logged(f"the token is {OF_KUBERAY}.", "the token is ***.", OF_KUBERAY),
    Logged(f"RAY_AUTH_TOKEN={OF_KUBERAY} ray status", "RAY_AUTH_TOKEN=*** ray status", OF_KUBERAY),
    Logged(f"> Authorization: Bearer {OF_RAY}", "> Authorization: Bearer ***", OF_RAY),
    Logged(f"{{'X-Ray-Authorization': 'Bearer {OF_KUBERAY}'}}", "{'X-Ray-Authorization': 'Bearer ***'}", OF_KUBERAY),
    Logged(
        f'{{"authorization": "Basic {_AWS_SECRET}", "n": 1}}', '{"authorization": "Basic ***", "n": 1}', _AWS_SECRET
    ),
    Logged(f"retry with bearer {_JWT}", "retry with bearer ***", _JWT),
    Logged(f"mounted {_JWT} at /var", "mounted *** at /var", _JWT),
    Logged(f"loads with {_HUGGING_FACE}", "loads with ***", _HUGGING_FACE),
    Logged(f"HF_TOKEN: '{_HUGGING_FACE}'", "HF_TOKEN: '***'", _HUGGING_FACE),
    Logged(f"key {_AWS} of s3", "key *** of s3", _AWS),
    Logged(f"aws_secret_access_key = {_AWS_SECRET}", "aws_secret_access_key = ***", _AWS_SECRET),
    Logged("redis://:s3cr3t-of-redis@redis:6379", "redis://***@redis:6379", "s3cr3t-of-redis"),
    Logged("rediss://ray:s3cr3t-of-redis@redis:6379", "rediss://***@redis:6379", "s3cr3t-of-redis"),
    Logged("ray start --redis-password=s3cr3t-of-redis --head", "ray start --redis-password=*** --head", "s3cr3t"),
    Logged("ray start --redis-password s3cr3t-of-redis --head", "ray start --redis-password *** --head", "s3cr3t"),
    Logged('{"password": "s3cr3t with blanks", "n": 1}', '{"password": "***", "n": 1}', "s3cr3t"),
    Logged(r'{"log": "{\"api_key\": \"s3cr3t\"}"}', r'{"log": "{\"api_key\": \"***\"}"}', "s3cr3t"),
    Logged("b'token': b's3cr3t'", "b'token': '***'", "s3cr3t"),
    Logged("""{"password": "s3cr3t's", "n": 1}""", """{"password": "***", "n": 1}""", "s3cr3t"),
    Logged("""{'password': 's3cr3t"s', 'n': 1}""", """{'password': '***', 'n': 1}""", "s3cr3t"),
    Logged(r'{"password": "a\u00e4\"s3cr3t\\", "n": 1}', r'{"password": "***", "n": 1}', "s3cr3t"),
    Logged('cut: password="a s3cr3t', "cut: password=***", "s3cr3t"),
    Logged(r"{\\\"api_key\\\": \\\"s3cr3t\\\"}", r"{\\\"api_key\\\": \\\"***\\\"}", "s3cr3t"),
    Logged("{'name': 'DB_PASSWORD', 'value': 's3cr3t'}", "{'name': 'DB_PASSWORD', 'value': '***'}", "s3cr3t"),
    Logged("['ray', '--redis-password', 's3cr3t', '-v']", "['ray', '--redis-password', '***', '-v']", "s3cr3t"),
    Logged("ray start --redis-password 's3cr3t of redis' -v", "ray start --redis-password '***' -v", "of redis"),
    Logged("(b'authorization', b'Basic czNjcjN0')", "(b'authorization', b'Basic ***')", "czNjcjN0"),
    Logged("{'Authorization': b'Basic czNjcjN0'}", "{'Authorization': b'Basic ***'}", "czNjcjN0"),
    Logged("Authorization: Negotiate czNjcjN0", "Authorization: ***", "czNjcjN0"),
    Logged("> Cookie: theme=dark; session=s3cr3t", "> Cookie: ***", "s3cr3t"),
    Logged("redis://:$s3cr3t@of@redis:6379", "redis://***@redis:6379", "s3cr3t"),
    Logged("https://blob/c?sv=1&sig=s3cr3t%3D&se=2", "https://blob/c?sv=1&sig=***&se=2", "s3cr3t"),
    Logged("\x1b[36mtoken\x1b[0m=\x1b[35ms3cr3t", "\x1b[36mtoken\x1b[0m=\x1b[35m***", "s3cr3t"),
    *(Logged(f"with {each} here", "with *** here", each) for each in _PUBLISHED),
    Logged("HF_TOKEN_2=s3cr3t password => s3cr3t", "HF_TOKEN_2=*** password => ***", "s3cr3t"),
    Logged(f"auth={OF_KUBERAY} a:{OF_RAY} b%3D{OF_RAY}", "auth=*** a:*** b%3D***", OF_RAY),
    Logged(f"in one line {KEYS[0]!r} end", "in one line '***' end", KEYS[0].splitlines()[3]),
)

WITHOUT = (
    "max_tokens=4096 prompt_tokens: 128 tokenizer=gpt2 tokens/s: 31.4",
    "rayproject/ray@sha256:" + "ab" * 32,
    "ObjectRef(c8ef45ccd0112571ffffffffffffffffffffffff0100000001000000)",
    "http://10.0.0.1:8265/api/jobs/?a=b connects as user@example.com",
    "Bearer authentication is on, and the secret is in a Secret",
    "2026-11-25 08:00:00,000 INFO keyboard.py:1 -- pressed",
)
"""Lines that only look as if they had a secret."""
