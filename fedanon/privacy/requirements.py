"""Requirements: privacy models as text, such as ``k=10,l=2:income,t=0.3:income:ordered``.

Items are separated by commas. An item is ``name=value:subject``: the name of a registered model, its number, and the
column or file it is about, if it is about one (k is not). More parameters follow as ``:name=value``, or as a bare word
where a parameter takes that word. A part that holds a comma or a colon is put in double quotes.
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


def parse_requirements(text: str) -> list[PrivacyModel]:
    """The models a requirement names, in its order; ConfigError names what is wrong with it."""
    models = [_model(item) for item in _items(text)]
    repeated = sorted({str(model) for model in models if models.count(model) > 1})
    if repeated:
        raise ConfigError(f"The requirement names a model twice: {'; '.join(repeated)}.")
    return models


def split_k(text: str) -> tuple[int | None, str]:
    """The k of a requirement, None if it names none, and the requirement without it."""
    ks = [model.min_people for model in parse_requirements(text) if model.min_people]
    if len(ks) > 1:
        raise ConfigError("The requirement names several values of k.")
    others = [item[0].strip().removesuffix(",") for item in _items(text) if item[1] != "k"]
    return ks[0] if ks else None, ",".join(others)


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


def _model(item: re.Match[str]) -> PrivacyModel:
    name, value = item[1], _bare(item[2])
    parts = [part.strip() for part in _PARTS.findall(item[3])]
    component = known_models().get(name)
    if component is None:
        raise ConfigError(f"Unknown requirement {name!r}. Known: {', '.join(sorted(known_models()))}.")
    settings: dict[str, Any] = {_number(component): value}
    if component.subject:
        if not parts:
            subject = component.subject.upper()
            raise ConfigError(f"The requirement {name} must say what it is about: {name}={value}:{subject}.")
        settings[component.subject] = _bare(parts.pop(0))
    for part in parts:
        option, given = _option(component, part)
        settings[option] = given
    return build(component, settings)


def _number(component: type[PrivacyModel]) -> str:
    """The parameter that a requirement gives right after the name: the first that is not the subject."""
    return next(entry.name for entry in _parameters(component) if entry.name != component.subject)


def _parameters(component: type[PrivacyModel]) -> list[Field[Any]]:
    """The fields a requirement may give; others, such as evidence, belong to claims alone."""
    return [entry for entry in fields(component) if "help" in entry.metadata]


def models_of_claim(claim: Mapping[str, Any]) -> list[PrivacyModel]:
    """The models that a manifest's claim lists, k-anonymity first; of a federation's k also that of the node.

    A claim about how the release was made, such as differential privacy, lists none.
    """
    by_title = {model.title: model for model in known_models().values()}
    models: list[PrivacyModel] = []
    if "k" in claim:
        local = int(claim.get("k_local", 1))
        models.append(KAnonymity(k=int(claim["k"]), scope=claim.get("scope", "node")))
        models += [KAnonymity(k=local)] if local > 1 else []
    for entry in claim.get("all_of", []):
        if entry["model"] == KAnonymity.title:
            continue  # said above
        if entry["model"] not in by_title:
            raise ConfigError(f"The manifest claims {entry['model']!r}, which is not known here.")
        models.append(build(by_title[entry["model"]], {n: v for n, v in entry.items() if n != "model"}))
    return models


def known_models() -> dict[str, type[PrivacyModel]]:
    """The models a requirement may name, by their names."""
    return {name: model for name, model in PRIVACY_MODELS.items() if issubclass(model, PrivacyModel)}


def _option(component: type[PrivacyModel], part: str) -> tuple[str, Any]:
    name, equals, value = (text.strip() for text in part.partition("="))
    allowed = _parameters(component)
    if equals:
        names = [entry.name for entry in allowed]
        if name not in names:
            raise ConfigError(f"{component.__name__} has no parameter {name}. Its parameters: {', '.join(names)}.")
        return name, _bare(value)
    word = _bare(part)
    hints = get_type_hints(component)
    for entry in allowed:
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
