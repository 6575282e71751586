"""Certificates: an authority, by which nodes know the server, and what the server presents. All on the curve P-384.

The authority outlives the server's certificate, so that a new one can be issued and nodes keep their `ca.crt`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedanon.errors import ConfigError, DataError
from fedanon.io.keys import new_key

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

#: the processes of a server speak to each other by these names
LOCAL = ("localhost", "127.0.0.1")
AUTHORITY_DAYS = 3650
#: below so many days, people are warned
WARN_DAYS = 30


@dataclass(frozen=True)
class Certified:
    """PEM texts: a certificate and the private key it is for."""

    certificate: bytes
    key: bytes = field(repr=False)


def new_authority() -> Certified:
    """An authority that can sign certificates of servers, and nothing else."""
    from cryptography import x509

    key, name = new_key(), _name("fedanon federation")
    builder = (
        _builder(name, name, key, datetime.now(UTC) + timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _certified(builder, key, signed_by=key)


def new_certificate(authority: Certified, hosts: Iterable[str], days: int) -> Certified:
    """A new key and a certificate for it, by which a server is known under ``hosts`` and to its own machine.

    It ends with the authority at the latest, since nodes would refuse it from then on.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    issuer, issuer_key = _loaded(authority)
    key = new_key()
    names = [_general_name(host) for host in dict.fromkeys((*hosts, *LOCAL))]
    until = min(datetime.now(UTC) + timedelta(days=days), issuer.not_valid_after_utc)
    builder = (
        _builder(_name("fedanon server"), issuer.subject, key, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    return _certified(builder, key, signed_by=issuer_key)


def read_in_force(path: Path) -> bytes:
    """A certificate that has not expired, as it stands in its file."""
    if days_left(path) < 0:
        raise ConfigError(f"The certificate {path.name} has expired; the server's people have to make a new one.")
    return path.read_bytes()


def days_left(path: Path) -> float:
    """Days until a certificate expires; negative if it has."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(path.read_bytes())
    except OSError:
        raise DataError(f"The certificate {path.name} cannot be read.") from None
    except ValueError:
        raise DataError(f"The file {path.name} is not a certificate.") from None
    return (found.not_valid_after_utc - datetime.now(UTC)) / timedelta(days=1)


# ---- X.509 ---------------------------------------------------------------------------------------


def _loaded(authority: Certified) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    """The authority's certificate and its key, which must belong together."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    certificate = x509.load_pem_x509_certificate(authority.certificate)
    try:
        key: Any = load_pem_private_key(authority.key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError("The key of the authority is not a private key without a password.") from None
    if key.public_key() != certificate.public_key():
        raise ConfigError("The key of the authority is not the one of ca.crt.")
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, until: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(minutes=5))  # clocks differ a little
        .not_valid_after(until)
    )


def _certified(
    builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, *, signed_by: EllipticCurvePrivateKey
) -> Certified:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives import serialization as form

    certificate = builder.sign(signed_by, hashes.SHA384()).public_bytes(form.Encoding.PEM)
    return Certified(certificate, key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))


def _name(common: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


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
