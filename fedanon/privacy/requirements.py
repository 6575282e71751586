"""Requirements: privacy models as text, such as ``l=2:income,t=0.3:income:ordered``.

Items are separated by commas. An item is ``name=value:subject``: the name of a registered model, its number, and the
column or file it is about. More parameters follow as ``:name=value``, or as a bare word where a parameter takes that
word. A part that holds a comma or a colon is put in double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, get_args, get_type_hints

from fedanon.errors import ConfigError
from fedanon.fields import build
from fedanon.privacy import PRIVACY_MODELS
from fedanon.privacy.base import PrivacyModel
from fedanon.privacy.models.k_anonymity import KAnonymity

_PART = r'(?:"[^"]*"|[^,:"]*)'
_ITEM = re.compile(rf"\s*(\w+)\s*=({_PART})((?::(?:\w+\s*=)?{_PART})*)(?:,|$)")
_PARTS = re.compile(rf":((?:\w+\s*=)?{_PART})")

Model = KAnonymity | PrivacyModel


def parse_requirements(text: str) -> list[Model]:
    """The models a requirement names, in its order; ConfigError names what is wrong with it."""
    models = [_model(item) for item in _items(text)]
    repeated = sorted({str(model) for model in models if models.count(model) > 1})
    if repeated:
        raise ConfigError(f"The requirement names a model twice: {'; '.join(repeated)}.")
    return models


def split_k(text: str) -> tuple[int | None, str]:
    """The k of a requirement, None if it names none, and the requirement without it."""
    ks = [model.k for model in parse_requirements(text) if isinstance(model, KAnonymity)]
    if len(ks) > 1:
        raise ConfigError("The requirement names several values of k.")
    rest = [item[0].strip().removesuffix(",") for item in _items(text) if item[1] != "k"]
    return ks[0] if ks else None, ",".join(rest)


def _items(text: str) -> list[re.Match[str]]:
    items: list[re.Match[str]] = []
    text, at = text.strip(), 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise ConfigError(f"The requirement {text[at:]!r} is not of the form name=value:column,name=value:column.")
        items.append(item)
        at = item.end()
    return items


def _model(item: re.Match[str]) -> Model:
    name, value = item[1], _bare(item[2])
    parts = [part.strip() for part in _PARTS.findall(item[3])]
    if name == "k":
        if parts or not value.isdecimal():
            raise ConfigError("The requirement k takes one whole number, as in k=10.")
        return KAnonymity(k=int(value))
    component = known_models().get(name)
    if component is None:
        raise ConfigError(f"Unknown requirement {name!r}. Known: {', '.join(['k', *sorted(known_models())])}.")
    subject, number, *_ = fields(component)
    if not parts:
        raise ConfigError(f"The requirement {name} must say what it is about: {name}={value}:{subject.name.upper()}.")
    settings: dict[str, Any] = {number.name: value, subject.name: _bare(parts[0])}
    for part in parts[1:]:
        option, given = _option(component, part)
        settings[option] = given
    return build(component, settings)


def models_of_claim(claim: Mapping[str, Any]) -> list[PrivacyModel]:
    """The models beyond k that a manifest's claim lists."""
    by_title = {model.title: model for model in known_models().values()}
    found: list[PrivacyModel] = []
    for entry in claim.get("all_of", []):
        if entry["model"] in by_title:
            settings = {name: value for name, value in entry.items() if name != "model"}
            found.append(build(by_title[entry["model"]], settings))
        elif entry["model"] != "k-anonymity":
            raise ConfigError(f"The manifest claims {entry['model']!r}, which is not known here.")
    return found


def known_models() -> dict[str, type[PrivacyModel]]:
    """The models a requirement may name, by their names."""
    return {name: model for name, model in PRIVACY_MODELS.items() if issubclass(model, PrivacyModel)}


def _option(component: type[PrivacyModel], part: str) -> tuple[str, Any]:
    name, equals, value = part.partition("=")
    if equals:
        return name.strip(), _bare(value)
    word = _bare(part)
    hints = get_type_hints(component)
    for entry in fields(component):
        if word in get_args(hints[entry.name]):
            return entry.name, word
        if _is_flag(entry, hints, word):
            return entry.name, True
    raise ConfigError(f"{component.__name__} has no parameter that takes {word!r}.")


def _is_flag(entry: Field[Any], hints: dict[str, Any], word: str) -> bool:
    return entry.name == word and hints[entry.name] is bool


def _bare(part: str) -> str:
    part = part.strip()
    return part[1:-1] if part.startswith('"') and part.endswith('"') and len(part) > 1 else part
