"""The key of pseudonyms as a file that only its owner can read."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from fedanon.data.person_key import SECRET, PersonKey
from fedanon.errors import ConfigError, DataError
from fedanon.io.atomic import atomic_write

_FORM = re.compile(rf"fedanon-person-key-1 ([0-9a-f]{{{2 * SECRET}}})\s*", re.ASCII)


def new_person_key(path: Path) -> PersonKey:
    """Write a new key; one that exists is never replaced, since pseudonyms made with it would be orphaned."""
    if path.exists() or path.is_symlink():
        raise ConfigError(f"The file {path} exists; a key is never replaced. Choose another name.")
    key = PersonKey(secrets.token_bytes(SECRET))
    atomic_write(path, f"fedanon-person-key-1 {key.secret.hex()}\n", mode=0o600)
    return key


def read_person_key(path: Path) -> PersonKey:
    """Read a key.

    Raises
    ------
    DataError
        If the file is not there or is no key: with another one, pseudonyms would not join those of earlier releases.
    ConfigError
        If others can read it.
    """
    try:
        text = path.read_bytes()[:1024].decode("ascii")
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"The key file {path} is not there or cannot be read. Without it, pseudonyms would not join those of "
            "earlier releases; `fedanon keys new` makes the first one."
        ) from None
    found = _FORM.fullmatch(text)
    if found is None:
        raise DataError(f"The file {path} is no key of pseudonyms, or was changed; `fedanon keys new` makes one.")
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise ConfigError(f"The key file {path} can be read by others; close it with chmod 600.")
    return PersonKey(bytes.fromhex(found[1]))
