"""Masks: what a node adds to its counts so that only the sum over all nodes can be read.

Every two nodes share a secret by X25519 (RFC 7748). HKDF with SHA-256 (RFC 5869) derives a key from it for each query,
and ChaCha20 (RFC 8439) expands the key to a stream of numbers; one of the two adds the stream, the other subtracts it,
modulo 2^32. This is the first half of the protocol of Bonawitz et al. 2017. Their second mask and secret shares are not
needed, as the query is simply repeated when a node leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedanon.errors import UpdateRejectedError
from fedanon.joint.signing import SIGNATURE_BYTES
from fedanon.types import CountArray

#: public keys by the number of their node
Keys = Mapping[int, bytes]
KEY_BYTES = 32
#: number of arrays at the end of a query that bring the keys
KEY_ARRAYS = 3


def new_secret() -> bytes:
    """A private key, for one run."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(secret: bytes) -> bytes:
    """The public key of a private one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def pack_keys(keys: Keys, signatures: Mapping[int, bytes] = {}) -> list[NDArray[Any]]:
    """Keys for the wire: numbers, and one row of bytes per key and per signature, zeros where there is none."""
    numbers, unsigned = sorted(keys), bytes(SIGNATURE_BYTES)
    signed = _rows([signatures.get(n) or unsigned for n in numbers], SIGNATURE_BYTES)
    return [np.array(numbers, dtype=np.int32), _rows([keys[n] for n in numbers], KEY_BYTES), signed]


def _rows(texts: Sequence[bytes], length: int) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(-1, length)


def read_keys(arrays: Sequence[NDArray[Any]]) -> dict[int, bytes]:
    """Keys from the wire, checked."""
    numbers, table, signed = arrays
    widths = (table, KEY_BYTES), (signed, SIGNATURE_BYTES)
    if numbers.ndim != 1 or any(rows.dtype != np.uint8 or rows.shape != (numbers.size, n) for rows, n in widths):
        raise UpdateRejectedError("the keys cannot be read")
    if not numbers.size:  # without keys the answer would have no masks
        raise UpdateRejectedError("the query brings no keys")
    keys = {int(number): row.tobytes() for number, row in zip(numbers, table, strict=True)}
    if len(keys) != numbers.size or len(set(keys.values())) != numbers.size:
        raise UpdateRejectedError("a number or a key comes twice")
    return keys


def mask_counts(counts: CountArray, secret: bytes, number: int, keys: Keys, step: int) -> CountArray:
    """Counts plus the masks shared with all other nodes, in the range of int32."""
    if keys.get(number) != public_key(secret) or len(keys) < 2:
        raise UpdateRejectedError("the keys of a query must include this node's own and another")
    query = _name_of(step, keys)
    total = counts.astype(np.uint32)
    for other in sorted(set(keys) - {number}):
        stream = _stream(_common_secret(secret, keys[other]), query, len(counts))
        total = total + stream if number < other else total - stream
    return total.view(np.int32).astype(np.int64)


def sum_masked_counts(answers: Iterable[CountArray]) -> CountArray:
    """The sum of the counts behind the answers of all nodes whose keys the query brought."""
    total = np.sum([answer.astype(np.uint32) for answer in answers], axis=0, dtype=np.uint32)
    return np.asarray(total.view(np.int32).astype(np.int64))


def _name_of(step: int, keys: Keys) -> bytes:
    """A name for the masks of a query, so that another step or another set of nodes has other masks."""
    digest = hashlib.sha256(b"fedanon together")  # on the wire the name of old stays
    digest.update(step.to_bytes(8, "big"))
    for number in sorted(keys):
        digest.update(number.to_bytes(8, "big", signed=True) + keys[number])
    return digest.digest()


def _common_secret(secret: bytes, other: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    try:
        return X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(other))
    except ValueError:  # a point of small order: everyone would know the secret
        raise UpdateRejectedError("a key of the query is not valid") from None


def _stream(common: bytes, query: bytes, length: int) -> NDArray[np.uint32]:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    key = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=query).derive(common)
    # a key is used for one stream only, so that the nonce may be constant
    cipher = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(cipher.update(bytes(4 * length)), dtype="<u4").astype(np.uint32)
