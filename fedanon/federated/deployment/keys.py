"""Keys: a certificate authority and a certificate for the server, a key pair for every node. All on the curve P-384."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

#: the processes of a server speak to each other by these names
LOCAL = ("localhost", "127.0.0.1")


@dataclass(frozen=True)
class ServerKeys:
    """PEM texts: what nodes need to know (``ca``), and what the server presents. The authority's key is not kept."""

    ca: bytes
    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class NodeKeys:
    """A key pair in the OpenSSH form, which is what Flower reads."""

    private: bytes
    public: bytes


def server_keys(host: str, days: int) -> ServerKeys:
    """A new authority, and a certificate of it for ``host`` and this machine."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    ca_key, key = _new_key(), _new_key()
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedanon federation")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fedanon server")])
    names = [_general_name(each) for each in dict.fromkeys((host, *LOCAL))]
    ca = (
        _builder(ca_name, ca_name, ca_key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
    )
    certificate = (
        _builder(name, ca_name, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    return ServerKeys(_signed(ca, ca_key), _signed(certificate, ca_key), _pem(key))


def node_keys() -> NodeKeys:
    """A new key pair."""
    from cryptography.hazmat.primitives import serialization as form

    key = _new_key()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    return NodeKeys(private, public + b"\n")


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


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP384R1())


def _builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    from cryptography import x509

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))  # clocks differ a little
        .not_valid_after(now + timedelta(days=days))
    )


def _signed(builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import hashes, serialization

    return builder.sign(key, hashes.SHA384()).public_bytes(serialization.Encoding.PEM)


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    return key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())


def _usage(*, certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
