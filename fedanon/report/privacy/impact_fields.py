"""The fields of an impact assessment: which there are, and what people filled in."""

from __future__ import annotations

import tomllib
from pathlib import Path

from fedanon.data.rules import take_only
from fedanon.errors import DataError

#: fields in order; those that are not filled in are left to people
FIELDS = (
    "controller",
    "officer",
    "nature",
    "purpose",
    "basis",
    "categories",
    "special",
    "subjects",
    "recipients",
    "necessity",
    "risks",
    "measures",
    "residual",
    "consultation",
    "review",
)
SIGNERS = ("author", "officer", "controller")
#: what people may fill in: the fields that evidence never fills, and the names of those who sign
BY_HAND = (
    *("controller", "officer", "purpose", "basis", "recipients", "consultation", "review"),
    *(f"{who}_name" for who in SIGNERS),
)
#: the longest text of a field
LONGEST_FIELD = 4000


def read_fields(path: Path) -> dict[str, str]:
    """The fields that people filled in: a TOML file with a text for each of some of :data:`BY_HAND`."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise DataError(f"The file of fields {path} cannot be read as UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"The file of fields {path} is not valid TOML: {error}.") from None
    take_only(given, BY_HAND, f"The file of fields {path.name}")
    wrong = [name for name, text in given.items() if not isinstance(text, str) or len(text) > LONGEST_FIELD]
    if wrong:
        raise DataError(f"The field {wrong[0]} must be a text of at most {LONGEST_FIELD} characters.")
    return {name: text.strip() for name, text in given.items() if text.strip()}
