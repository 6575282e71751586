"""Languages of the risk report: one table of texts each, and how numbers are written.

Every text a reader sees comes from ``english.toml`` or ``portuguese.toml``, which have the same keys.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fedanon.errors import ConfigError
from fedanon.report import numbers
from fedanon.report.document import Labels

TABLES = {"en": "english.toml", "pt": "portuguese.toml"}


@dataclass(frozen=True)
class Language:
    """Texts and number format of a language.

    Parameters
    ----------
    code : such as ``en``.
    texts : by dotted keys; names in braces are filled in.
    decimal, thousands : the separators within numbers.
    """

    code: str
    texts: Mapping[str, str]
    decimal: str
    thousands: str

    def __call__(self, key: str, /, **values: Any) -> str:
        """Return the text of a key; numbers among ``values`` are formatted for the language."""
        return self.texts[key].format(**{name: self._shown(value) for name, value in values.items()})

    def knows(self, key: str) -> bool:
        """Return whether the table has a text for a key."""
        return key in self.texts

    def number(self, value: float | None) -> str:
        """Format at most four significant digits; a dash if there is no number."""
        text = numbers.number(value)
        return self._localized(text.rstrip("0").rstrip(".") if "." in text else text)

    def share(self, value: float | None) -> str:
        """Format a share in percent, with one decimal, or three below 0.1 %; nearly all is never shown as all."""
        if value is None or value != value:
            return numbers.NOTHING
        if 0 < abs(value) < 1e-5:
            return self._localized("< 0.001 %")
        if 0.9995 <= value < 1:
            return self._localized("> 99.9 %")
        places = 1 if value == 0 or abs(value) >= 1e-3 else 3
        return self._localized(f"{100 * value:.{places}f} %".replace(".0 %", " %"))

    def interval(self, low: float, high: float) -> str:
        """Format a range from one share to another."""
        return self("words.range", low=self.share(low).removesuffix(" %"), high=self.share(high))

    def named(self, columns: Iterable[str]) -> str:
        """List names of columns as code, separated by commas; the word for none if there are none."""
        return ", ".join(f"`{name}`" for name in columns) or self("words.none")

    def labels(self) -> Labels:
        """Return the renderers' own texts."""
        fields = ("contents", "skip", "theme", "numbers", "sort", "page", "left_out", "more")
        return Labels(**{name: self.texts[f"labels.{name}"] for name in fields})

    def _shown(self, value: Any) -> Any:
        return self.number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    def _localized(self, text: str) -> str:
        swapped = {",": self.thousands, ".": self.decimal}
        return "".join(swapped.get(sign, sign) for sign in text)


@lru_cache
def language(code: str) -> Language:
    """Return the language with this code."""
    if code not in TABLES:
        raise ConfigError(f"The language of a report must be one of: {', '.join(TABLES)}. Got {code!r} instead.")
    text = files("fedanon.report.privacy").joinpath(TABLES[code]).read_text(encoding="utf-8")
    texts = dict(flat_texts(tomllib.loads(text)))
    return Language(code, texts, texts["number.decimal"], texts["number.thousands"])


def flat_texts(table: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    """Yield the texts of a table with their dotted keys."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat_texts(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
