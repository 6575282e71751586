"""`fedanon methods`: every anonymizer with its parameters."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from fedanon.cli import options
from fedanon.cli.output import print_json, print_table

#: the groups of methods, and how a list of them is headed
TITLES = {
    "grouping": "Anonymizers",
    "perturbative": "Perturbative methods: they change values",
    "federated": "Methods of a federation (`fedanon simulate`): hospitals agree on one recoding",
}


def methods(as_json: options.Json = False) -> None:
    """List the anonymizers and their parameters."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.federated.together import TOGETHER

    found = [_describe(name, component) for registry in (ANONYMIZERS, TOGETHER) for name, component in registry.items()]
    if as_json:
        print_json(found)
        return
    for group, title in TITLES.items():
        rows = [_row(entry) for entry in found if entry["group"] == group]
        print_table(title, ["name", "claims", "what it does", "parameters"], rows)


def _row(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    parameters = "\n".join(f"{p['name']}={p['default']}: {p['help']}" for p in entry["parameters"])
    return entry["name"], entry["claim"], entry["summary"], parameters


def _group(component: Any) -> str:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.anonymizers.perturbative.base import Perturbative

    if not issubclass(component, Anonymizer):
        return "federated"
    return "perturbative" if issubclass(component, Perturbative) else "grouping"


def _claim(component: Any) -> str:
    from fedanon.anonymizers.base import Anonymizer, KAnonymizer

    if not issubclass(component, Anonymizer):
        return "k-anonymity over the federation"
    if issubclass(component, KAnonymizer):
        return "k-anonymity"
    return "nothing" if component.claim is Anonymizer.claim else "k-anonymity, if all columns are changed"


def _describe(name: str, component: Any) -> dict[str, Any]:
    from fedanon.parameters import describe

    hints = get_type_hints(component)
    return {
        "name": name,
        "group": _group(component),
        "summary": (component.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " "),
        "claim": _claim(component),
        "numeric_only": getattr(component, "numeric_only", False),
        "parameters": [
            {
                "name": entry.name,
                "default": "required" if entry.default is MISSING else entry.default,
                "accepts": describe(entry, hints[entry.name]),
                "help": entry.metadata.get("help", ""),
            }
            for entry in fields(component)
        ],
    }
