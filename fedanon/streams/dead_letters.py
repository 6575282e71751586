"""Dead letters: messages that cannot be taken in, kept where only the gateway's people see them.

The log says why, never what a message holds; how many there were is counted.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger("fedanon.streams")

DEAD_LETTERS = "dead-letters.jsonl"
#: bytes of them that are kept
MOST_BYTES = 10_000_000


class DeadLetters:
    """The file of a state folder, and a topic where one is named.

    Parameters
    ----------
    folder : private to the gateway.
    send : sends a letter elsewhere too, if given.
    """

    def __init__(self, folder: Path, send: Callable[[str], None] | None = None) -> None:
        self._path, self._send = folder / DEAD_LETTERS, send

    def bury(self, data: bytes | Mapping[str, Any], reason: str, count: int) -> None:
        """Keep a message; ``count`` are those so far."""
        log.warning("A message was refused (%d so far): %s", count, reason)
        text = data.decode(errors="replace") if isinstance(data, bytes) else data
        letter = json.dumps({"reason": reason, "message": text}, default=str)
        if self._send is not None:
            self._send(letter)
        if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
            return
        with os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a") as file:
            file.write(letter + "\n")
