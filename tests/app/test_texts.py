"""Both languages say the same, and every text a page asks for is there."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Formatter

import pytest

import fedanon.app
from fedanon.app.language import CATALOGUES, app_language

FOLDER = Path(fedanon.app.__file__).parent
SOURCES = [*FOLDER.rglob("*.html"), *FOLDER.rglob("*.py")]


def _own(code: str) -> dict[str, str]:
    return {key: text for key, text in app_language(code).texts.items() if key.startswith("app.")}


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys_and_the_same_names_in_braces() -> None:
    english, portuguese = _own("en"), _own("pt")
    assert list(english) == list(portuguese)
    assert {key: _names(text) for key, text in english.items()} == {k: _names(t) for k, t in portuguese.items()}


def test_no_text_is_left_in_the_other_language() -> None:
    """Equal are only names and words that both languages have."""
    equal = {key.split(".")[-1] for key, text in _own("en").items() if text == _own("pt")[key]}
    assert equal <= {"auc_pooled", "f1", "r2", "model_xgboost", "classes", "classes_axis"}


@pytest.mark.parametrize("code", CATALOGUES)
def test_every_text_that_is_asked_for_is_there(code: str) -> None:
    say = app_language(code)
    asked = set()
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        asked |= {f"app.{key}" for key in re.findall(r"""\bt\(["']([a-z_]+\.[a-z_0-9]+)["'][,)]""", text)}
        asked |= set(re.findall(r"""\bsay\(["']([a-z_]+\.[a-z_0-9.]+)["'][,)]""", text))
    assert len(asked) > 150
    assert {key for key in asked if not say.knows(key)} == set()


def test_no_text_is_there_in_vain() -> None:
    """A key is written in a page, or made of a beginning that is."""
    text = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES)
    begun = set(re.findall(r"""["']([a-z_]+\.[a-z_]*)["'] ~""", text)) | {"method."}
    keys = [key.removeprefix("app.") for key in _own("en")]
    assert [key for key in keys if key not in text and not any(key.startswith(start) for start in begun)] == []


def test_templates_hold_no_sentence_of_their_own() -> None:
    for page in FOLDER.rglob("*.html"):
        text = re.sub(r"{%.*?%}|{{.*?}}|{#.*?#}", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", text)
        words = set(re.findall(r"[A-Za-zÀ-ÿ]{3,}", text))
        assert words <= {"fedanon"}, (page.name, words)


def test_the_vendored_script_keeps_its_licence() -> None:
    folder = files("fedanon.app").joinpath("static")
    assert "Zero-Clause BSD" in folder.joinpath("htmx.LICENSE").read_text(encoding="utf-8")
    assert 'version:"2.' in folder.joinpath("htmx.min.js").read_text(encoding="utf-8")
