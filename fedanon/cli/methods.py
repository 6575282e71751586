"""`fedanon methods`: every anonymizer with its parameters."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, get_type_hints

from fedanon.cli import options
from fedanon.cli.output import print_json, print_table


def methods(as_json: options.Json = False) -> None:
    """List the anonymizers and their parameters."""
    from fedanon.anonymizers import ANONYMIZERS

    found = [_describe(name, component) for name, component in ANONYMIZERS.items()]
    if as_json:
        print_json(found)
        return
    rows = []
    for entry in found:
        parameters = "\n".join(f"{p['name']}={p['default']}: {p['help']}" for p in entry["parameters"])
        rows.append((entry["name"], entry["claim"], entry["summary"], parameters))
    print_table("Anonymizers", ["name", "claims", "what it does", "parameters"], rows)


def _describe(name: str, component: Any) -> dict[str, Any]:
    from fedanon.anonymizers.base import KAnonymizer
    from fedanon.parameters import describe

    hints = get_type_hints(component)
    return {
        "name": name,
        "summary": (component.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " "),
        "claim": "k-anonymity" if issubclass(component, KAnonymizer) else "nothing",
        "numeric_only": component.numeric_only,
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
