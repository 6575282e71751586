"""Text that a spreadsheet would run as a formula is written with an apostrophe in front, and read back without it."""

from __future__ import annotations

import re

TRIGGERS = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def guard(text: str) -> str:
    """``text``, made harmless to a spreadsheet.

    Text that already looks guarded gets one more apostrophe, so that :func:`unguard` is the exact inverse.
    """
    return "'" + text if text.lstrip("'").startswith(TRIGGERS) and not _NUMBER.fullmatch(text) else text


def unguard(text: str) -> str:
    """Inverse of :func:`guard`."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(TRIGGERS) else text
