"""Languages of the risk report: one table of words each, and how numbers are written.

Every word a reader sees comes from ``english.toml`` or ``portuguese.toml``, which have the same keys.
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
    """Words and numbers of a language.

    Parameters
    ----------
    code : such as ``en``.
    words : texts by dotted keys; names in braces are filled in.
    decimal, thousands : the signs within numbers.
    """

    code: str
    words: Mapping[str, str]
    decimal: str
    thousands: str

    def __call__(self, key: str, /, **values: Any) -> str:
        """The text of a key; numbers among ``values`` are written the language's way."""
        return self.words[key].format(**{name: self._shown(value) for name, value in values.items()})

    def knows(self, key: str) -> bool:
        """Whether the table has words for a key."""
        return key in self.words

    def number(self, value: float | None) -> str:
        """At most four significant places; a dash where there is nothing."""
        text = numbers.number(value)
        return self._localized(text.rstrip("0").rstrip(".") if "." in text else text)

    def share(self, value: float | None) -> str:
        """A share in per cent, with one place, or two significant ones below 0.1 %."""
        if value is None or value != value:
            return numbers.NOTHING
        if 0 < abs(value) < 1e-5:
            return self._localized("< 0.001 %")
        places = 1 if value == 0 or abs(value) >= 1e-3 else 3
        return self._localized(f"{100 * value:.{places}f} %".replace(".0 %", " %"))

    def interval(self, low: float, high: float) -> str:
        """From one share to another."""
        return self("words.range", low=self.share(low).removesuffix(" %"), high=self.share(high))

    def named(self, columns: Iterable[str]) -> str:
        """Names of columns, as code, with commas; the word for none if there are none."""
        return ", ".join(f"`{name}`" for name in columns) or self("words.none")

    def labels(self) -> Labels:
        """What renderers say by themselves."""
        fields = ("contents", "skip", "theme", "numbers", "sort", "page", "left_out", "more")
        return Labels(**{name: self.words[f"labels.{name}"] for name in fields})

    def _shown(self, value: Any) -> Any:
        return self.number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value

    def _localized(self, text: str) -> str:
        swapped = {",": self.thousands, ".": self.decimal}
        return "".join(swapped.get(sign, sign) for sign in text)


@lru_cache
def language(code: str) -> Language:
    """The language with this code."""
    if code not in TABLES:
        raise ConfigError(f"The report is written in one of: {', '.join(TABLES)}. Got {code!r} instead.")
    text = files("fedanon.report.privacy").joinpath(TABLES[code]).read_text(encoding="utf-8")
    words = dict(_flat(tomllib.loads(text)))
    return Language(code, words, words["number.decimal"], words["number.thousands"])


def _flat(table: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value
