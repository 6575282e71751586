"""`fedanon data`: the data sets at hand."""

from __future__ import annotations

from typing import Annotated

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json, print_table

app = typer.Typer(help="List the data sets, or fetch one that cannot be shipped.", no_args_is_help=True)


@app.command("list")
def list_datasets(as_json: options.Json = False) -> None:
    """List the data sets: bundled ones work at once, others are read from FEDANON_DATA or the cache."""
    from dataclasses import asdict

    from fedanon.data.datasets import describe

    found = describe()
    if as_json:
        print_json([asdict(info) for info in found])
        return
    rows = [
        (i.name, i.rows, "bundled" if i.bundled else "yes" if i.available else "no", i.licence, i.title) for i in found
    ]
    print_table("Data sets", ["name", "rows", "at hand", "licence", "what"], rows)


@app.command("fetch")
def fetch_dataset(name: Annotated[str, typer.Argument(help="Name of the data set.")]) -> None:
    """Download a data set into the user cache; its checksum is verified."""
    from fedanon.data.datasets import fetch

    for path in fetch(name):
        console().print(f"{path}")
