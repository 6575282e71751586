"""The texts of the app: one file per language, with the same keys; words of the report come from the report's own."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files

from fedanon.report.privacy.language import Language, flat_texts, language

CATALOGUES = {"en": "english.toml", "pt": "portuguese.toml"}


@lru_cache
def app_language(code: str) -> Language:
    """Return the texts of the app in a language, beside those of the report; the app's keys begin with ``app.``."""
    text = files("fedanon.app").joinpath("texts", CATALOGUES[code]).read_text(encoding="utf-8")
    known = language(code)
    own = dict(flat_texts(tomllib.loads(text), "app."))
    return replace(known, texts={**known.texts, **own})
