"""`fedanon keys`: the key by which people become pseudonyms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedanon.cli import options
from fedanon.cli.output import console, print_json

app = typer.Typer(help="Create the key for pseudonyms, or show its fingerprint.", no_args_is_help=True)


@app.command("new")
def new(
    file: Annotated[Path, typer.Argument(help="Where to write it, readable only by you; never replaced.")],
    as_json: options.Json = False,
) -> None:
    """Make a key for pseudonyms and shifted dates. Keep it: with another one, later releases would not join."""
    from fedanon.io.person_key import new_person_key

    _say(file, new_person_key(file).fingerprint, as_json=as_json, written=True)


@app.command("show")
def show(file: Annotated[Path, typer.Argument(help="The key file.")], as_json: options.Json = False) -> None:
    """Show the fingerprint of a key, which manifests name."""
    from fedanon.io.person_key import read_person_key

    _say(file, read_person_key(file).fingerprint, as_json=as_json, written=False)


def _say(file: Path, fingerprint: str, *, as_json: bool, written: bool) -> None:
    if as_json:
        print_json({"key": str(file), "fingerprint": fingerprint})
        return
    out = console()
    if written:
        out.print(f"Written: {file}. Keep it secret, and do not lose it: later releases join by it.", soft_wrap=True)
    out.print(f'key_fingerprint = "{fingerprint}"', soft_wrap=True)
    if written:
        out.print("This line in the schema, above the attributes, lets no other key be used.")
