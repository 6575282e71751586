"""Signatures: how nodes recognize each other's keys for masks, though it is the server that hands the keys out.

A node signs the key that it made for a run, together with the run and its own number, by the key pair that it is
registered with (ECDSA on P-384 with SHA-384, FIPS 186-5). A signature for another run, number or key proves nothing
here. Flower signs timestamps with the same key pair; none of them begins like our statements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from numpy.typing import NDArray

from fedanon.errors import ConfigError, DataError, RefusedError
from fedanon.fields import warn_renamed
from fedanon.io.keys import check_public_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey

#: begins every statement; the wire keeps the name of old
CONTEXT = b"fedanon together: a key for masks"
#: a node is named by the SHA-256 of its public key; a signature is two numbers of the size of the curve
NAME_BYTES, NUMBER_BYTES = 32, 48
SIGNATURE_BYTES = NAME_BYTES + 2 * NUMBER_BYTES


@dataclass(frozen=True)
class NodeIdentity:
    """Who a node is, and with whom it sums its counts.

    Parameters
    ----------
    private : its own private key; without one it signs nothing.
    peers : public keys of the nodes that it knows, itself included, by name; None asks nobody for a signature.
    """

    private: EllipticCurvePrivateKey | None = field(default=None, repr=False)
    peers: Mapping[bytes, EllipticCurvePublicKey] | None = None

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> NodeIdentity:
        """The identity that a node config states by `identity-key` and `peer-keys`; either may be missing."""
        own, others = str(config.get("identity-key", "")), str(config.get("peer-keys", ""))
        if former := str(config.get("hospital-keys", "")):
            # a node config written by hand: who asked for signatures must not lose them by a renaming
            warn_renamed("hospital-keys", "peer-keys")
            others = others or former
        if not own and others:
            raise ConfigError("A node with peer_keys needs an identity_key too: its own key has to be signed.")
        private = _private_key(Path(own)) if own else None
        if private is None or not others:
            return cls(private)
        return cls(private, {_name(key): key for key in (private.public_key(), *_public_keys(Path(others)))})

    def signature(self, run_id: int, number: int, key: bytes) -> bytes:
        """The name of this node and its signature of its key for a run; empty without a private key."""
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        if self.private is None:
            return b""
        signed = decode_dss_signature(self.private.sign(_statement(run_id, number, key), _algorithm()))
        return _name(self.private.public_key()) + b"".join(part.to_bytes(NUMBER_BYTES, "big") for part in signed)

    def check(self, run_id: int, keys: Mapping[int, bytes], signatures: NDArray[Any]) -> None:
        """Raise RefusedError unless every key is signed for this run, each by another of the peers.

        ``signatures`` has a row of bytes per key, zeros for a key that is not signed.
        """
        if self.peers is None:
            return
        left = dict(self.peers)
        for (number, key), row in zip(keys.items(), signatures, strict=True):
            name, signed = row[:NAME_BYTES].tobytes(), row[NAME_BYTES:].tobytes()
            if not row.any():
                _reject(number, "is not signed")
            if name not in self.peers:
                _reject(number, "is signed by none of its peer_keys")
            if name not in left:
                _reject(number, "is signed by a node that signed another key")
            if not _is_valid(left.pop(name), signed, _statement(run_id, number, key)):
                _reject(number, "has a signature for another run, number or key")


def _reject(number: int, fault: str) -> NoReturn:
    raise RefusedError("peers", f"This node sums only with nodes it knows: the key of number {number} {fault}.")


def _statement(run_id: int, number: int, key: bytes) -> bytes:
    """What is signed; the key comes last, so that no two statements have the same bytes."""
    return b"\0".join([CONTEXT, str(run_id).encode(), str(number).encode(), key])


def _is_valid(public: EllipticCurvePublicKey, signed: bytes, statement: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    r, s = (int.from_bytes(part, "big") for part in (signed[:NUMBER_BYTES], signed[NUMBER_BYTES:]))
    try:
        public.verify(encode_dss_signature(r, s), statement, _algorithm())
    except InvalidSignature:
        return False
    return True


def _algorithm() -> Any:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA384

    return ECDSA(SHA384())


def _name(public: EllipticCurvePublicKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    der = public.public_bytes(form.Encoding.DER, form.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).digest()


# ---- files ---------------------------------------------------------------------------------------


def _private_key(path: Path) -> EllipticCurvePrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(_read(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"The identity_key {path.name} is not a private key without a password.") from None
    if not isinstance(key, EllipticCurvePrivateKey) or key.key_size != 8 * NUMBER_BYTES:
        raise ConfigError(f"The identity_key {path.name} must be on P-384; `fedanon node init` makes such a key.")
    return key


def _public_keys(path: Path) -> list[EllipticCurvePublicKey]:
    """All keys of a file, one per line, or of the files *.pub in a folder."""
    files = sorted(path.glob("*.pub")) if path.is_dir() else [path]
    return [_public_key(line, file.name) for file in files for line in _read(file).splitlines() if line.strip()]


def _public_key(line: bytes, file: str) -> EllipticCurvePublicKey:
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        key: Any = load_ssh_public_key(check_public_key(line))
    except ConfigError:
        raise ConfigError(f"A line of {file} in peer_keys is not the public key (node.pub) of a node.") from None
    if key.key_size != 8 * NUMBER_BYTES:
        raise ConfigError(f"The keys of {file} in peer_keys must be on P-384, as `fedanon node init` makes them.")
    found: EllipticCurvePublicKey = key
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise DataError(f"The key file {path.name} cannot be read.") from None
