"""Text that a spreadsheet would run as a formula, made harmless by an apostrophe in front, and read back."""

from __future__ import annotations

import pandas as pd

from fedanon.io.dialect import is_number

TRIGGERS = ("=", "+", "-", "@", "\t", "\r")


def guard(text: str, decimal: str = ".") -> str:
    """``text``, made harmless to a spreadsheet; a number is no formula.

    Text that already looks guarded gets one more apostrophe, so that :func:`unguard` is the exact inverse.
    """
    return "'" + text if text.lstrip("'").startswith(TRIGGERS) and not is_number(text, decimal) else text


def unguard(text: str) -> str:
    """Inverse of :func:`guard`."""
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(TRIGGERS) else text


def guarded(frame: pd.DataFrame, decimal: str) -> tuple[pd.DataFrame, dict[str, int], list[str]]:
    """A frame of texts and numbers made harmless; the number of cells changed by column; the names changed."""
    result = frame.rename(columns=lambda name: guard(name, decimal))
    counts: dict[str, int] = {}
    for i, name in enumerate(frame.columns):
        if pd.api.types.is_numeric_dtype(frame[name]):
            continue
        texts = frame[name].map(lambda cell: guard(str(cell), decimal), na_action="ignore").to_numpy(dtype=object)
        changed = int(sum(new != str(old) for new, old in zip(texts, frame[name], strict=True) if isinstance(new, str)))
        counts |= {str(name): changed} if changed else {}
        result.isetitem(i, texts)
    return result, counts, [str(name) for name in frame.columns if guard(str(name), decimal) != name]


def unguarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The inverse of :func:`guarded`, of a frame of texts."""
    columns = {unguard(str(name)): frame[name].map(unguard, na_action="ignore") for name in frame.columns}
    return pd.DataFrame(columns, index=frame.index)
