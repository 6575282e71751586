"""The key that turns people into pseudonyms; whoever has it can do so too, so it stays with the data steward."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

#: of the secret, in bytes
SECRET = 32
#: hexadecimal digits of a pseudonym (80 bits: among a million people, two meet with a chance of 4 in 10**13)
DIGITS = 20


@dataclass(frozen=True)
class PersonKey:
    """A secret of :data:`SECRET` random bytes; :func:`fedanon.io.person_key.new_person_key` makes one."""

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """Names the key without giving it away."""
        return self._digest("fingerprint", "").hex()[:16]

    def pseudonym(self, person: str) -> str:
        """The same for the same person in every file, and nobody's number without the key."""
        return self._digest("pseudonym", person).hex()[:DIGITS]

    def offset(self, person: str, most: int) -> int:
        """Days by which all dates of a person move, between -most and most."""
        return int.from_bytes(self._digest("offset", person)[:16], "big") % (2 * most + 1) - most

    def _digest(self, purpose: str, text: str) -> bytes:
        return hmac.new(self.secret, f"{purpose}\0{text}".encode(), hashlib.sha256).digest()
