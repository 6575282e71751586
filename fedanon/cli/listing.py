"""`fedanon methods`: every anonymizer with its parameters."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table

#: the groups of methods, and how a list of them is headed
TITLES = {
    "grouping": "Anonymizers",
    "perturbative": "Perturbative methods: they change values",
    "federated": "Methods of a federation (`fedanon simulate`): hospitals agree on one recoding",
}


def methods(as_json: options.Json = False) -> None:
    """List the anonymizers and their parameters."""
    from fedanon.anonymizers import ANONYMIZERS
    from fedanon.joint import JOINT_METHODS

    found = [
        _describe(name, component) for registry in (ANONYMIZERS, JOINT_METHODS) for name, component in registry.items()
    ]
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
    from fedanon.sdc.methods.base import Perturbative

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
    from fedanon.fields import default_of, describe

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
                "default": "required" if default_of(entry) is MISSING else default_of(entry),
                "accepts": describe(entry, hints[entry.name]),
                "help": entry.metadata.get("help", ""),
            }
            for entry in fields(component)
        ],
    }


# ---- `fedanon data`: the data sets at hand -------------------------------------------------------


app = typer.Typer(
    help="List the data sets, fetch one that cannot be shipped, or write example files.", no_args_is_help=True
)


@app.command("list")
def list_datasets(as_json: options.Json = False) -> None:
    """List the data sets: bundled ones work at once, others are read from FEDANON_DATA or the cache."""
    from dataclasses import asdict

    from fedanon.datasets import describe

    found = describe()
    if as_json:
        print_json([asdict(info) for info in found])
        return
    rows = [
        (i.name, i.rows, "bundled" if i.bundled else "yes" if i.available else "no", i.licence, i.title) for i in found
    ]
    print_table("Data sets", ["name", "rows", "at hand", "license", "what"], rows)


@app.command("fetch")
def fetch_dataset(name: Annotated[str, typer.Argument(help="Name of the data set.")]) -> None:
    """Download a data set into the user cache; its checksum is verified."""
    from fedanon.datasets import fetch

    for path in fetch(name):
        console().print(f"{path}")


@app.command("example")
def example_files(folder: Annotated[Path, typer.Argument(help="Where to write them.")] = Path()) -> None:
    """Write files of made-up patients and readings, to try things out: tables, their schemas, a stream."""
    from fedanon.datasets.example_files import write_example_files

    for path in write_example_files(folder):
        console().print(f"Written: {path}")
