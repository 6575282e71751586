"""Keys on the curve P-384, and the key pair by which a node is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


@dataclass(frozen=True)
class NodeKeys:
    """A key pair in the OpenSSH form, which is what Flower reads."""

    private: bytes
    public: bytes


def new_key() -> EllipticCurvePrivateKey:
    """A private key."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP384R1())


def node_keys(comment: str = "") -> NodeKeys:
    """A new key pair; the comment is appended to the public key."""
    from cryptography.hazmat.primitives import serialization as form

    key = new_key()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    return NodeKeys(private, b" ".join(filter(None, (public, comment.encode()))) + b"\n")


def check_public_key(text: bytes) -> bytes:
    """The public key of a node without its comment, or ConfigError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    try:
        key = form.load_ssh_public_key(text)
    except (ValueError, UnsupportedAlgorithm):
        raise ConfigError("This is not a public key; a node's key begins with 'ecdsa-sha2-nistp384'.") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError("A node's public key must be an elliptic-curve key; `fedanon node init` makes one.")
    return key.public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH) + b"\n"
