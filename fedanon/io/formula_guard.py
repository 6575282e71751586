"""Text that a spreadsheet would run as a formula, made harmless by an apostrophe in front, and read back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fedanon.io.dialect import is_number
from fedanon.types import AnyArray

if TYPE_CHECKING:
    import pandas as pd

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
    import pandas as pd

    result = frame.rename(columns=lambda name: guard(name, decimal))
    counts: dict[str, int] = {}
    for i, name in enumerate(frame.columns):
        if pd.api.types.is_numeric_dtype(frame[name]):
            continue
        texts = frame[name].map(str, na_action="ignore").to_numpy(dtype=object)
        safe, changed = _changed(texts, lambda text: guard(text, decimal))
        counts |= {str(name): changed} if changed else {}
        result.isetitem(i, safe)
    return result, counts, [str(name) for name in frame.columns if guard(str(name), decimal) != name]


def unguarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The inverse of :func:`guarded`, of a frame of texts."""
    import pandas as pd

    columns = {}
    for name in frame.columns:
        plain, changed = _changed(frame[name].to_numpy(dtype=object), unguard)
        columns[unguard(str(name))] = pd.Series(plain, frame.index, frame[name].dtype) if changed else frame[name]
    return pd.DataFrame(columns, index=frame.index)


def _changed(texts: AnyArray, change: Callable[[str], str]) -> tuple[AnyArray, int]:
    """The texts, each value changed once, and how many cells differ; what is missing stays."""
    import pandas as pd

    codes, values = pd.factorize(texts)
    new = np.array([change(value) for value in values], dtype=object)
    differs = np.array([old != text for old, text in zip(values, new, strict=True)], dtype=bool)
    if not differs.any():
        return texts, 0
    rows = (codes >= 0) & differs[codes]
    return np.where(rows, new[codes], texts), int(rows.sum())
