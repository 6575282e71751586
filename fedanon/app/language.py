"""The texts of the app: one file per language, with the same keys; words of the report come from the report's own."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fedanon.report.privacy.language import Language, flat_texts, language

CATALOGUES = {"en": "english.toml", "pt": "portuguese.toml"}
#: sentences of the library in other languages than its own
SENTENCES = {"pt": "sentences_portuguese.toml"}
#: names in braces that stand for a sentence, which is translated too
NESTED = ("said", "what", "topic", "counted")
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?")
_NAME = re.compile(r"\\\{(\w+)\\\}")
_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")


@lru_cache
def app_language(code: str) -> Language:
    """Return the texts of the app in a language, beside those of the report; the app's keys begin with ``app.``."""
    known = language(code)
    own = dict(flat_texts(_read(CATALOGUES[code]), "app."))
    return replace(known, texts={**known.texts, **own})


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("fedanon.app").joinpath("texts", name).read_text(encoding="utf-8"))


# ---- sentences of the library --------------------------------------------------------------------


@lru_cache
def sentences(code: str) -> list[tuple[re.Pattern[str], str]]:
    """The sentences of the library that are known in a language, those that begin with words and say most first."""
    known: dict[str, str] = _read(SENTENCES[code])
    ordered = sorted(known, key=lambda text: (text.startswith("{"), -len(re.sub(r"{\w+}", "", text))))
    return [(re.compile(_NAME.sub(r"(?P<\1>.+?)", re.escape(text)), re.DOTALL), known[text]) for text in ordered]


@lru_cache(maxsize=2000)
def translate(text: str, code: str) -> str | None:
    """A sentence of the library in a language, or several one after the other; None if one is not known in it."""
    if code not in SENTENCES:
        return text
    for pattern, translated in sentences(code):
        found = pattern.fullmatch(text)
        if found is not None:
            filled = {
                name: translate(value, code) if name in NESTED else _localized(value, code)
                for name, value in found.groupdict().items()
            }
            if None not in filled.values():
                return translated.format(**filled)
    parts = _END.split(text)
    told = [translate(part, code) for part in parts] if len(parts) > 1 else [None]
    return None if None in told else " ".join(map(str, told))


def _localized(value: str, code: str) -> str:
    """A number as the language writes it; anything else as it is."""
    say = language(code)
    return value.translate({44: say.thousands, 46: say.decimal}) if _NUMBER.fullmatch(value) else value
