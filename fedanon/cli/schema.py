"""`fedanon schema`: propose a schema for a file, or check one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table
from fedanon.errors import SchemaError

if TYPE_CHECKING:
    from fedanon.data.lint import Suspect
    from fedanon.data.schema import Attribute, Schema

app = typer.Typer(help="Propose a schema for a table, or check one.", no_args_is_help=True)


@app.command("infer")
@options.takes_reading
def infer(
    reading: options.ReadOptions,
    file: Annotated[str, typer.Argument(help=options.INPUT)],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write it; printed by default.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that models predict; it is published unchanged."),
    ] = None,
    force: options.Force = False,
    audit: AuditFile = None,
) -> None:
    """Propose a schema: types, ranges and likely roles. A proposal only: read it before you use it."""
    from fedanon.data.infer import proposed_toml
    from fedanon.io.atomic import atomic_write
    from fedanon.io.manifest import file_sha256
    from fedanon.io.outputs import check_output

    source = reading.at(file).source
    check_output(output, inputs=source.inputs, endings=(".toml",), force=force)
    with audited(audit, "schema infer") as entry:
        frame, dialect = source.read_frame()
        text = proposed_toml(frame, name=source.name, target=target)
        if output is None:
            typer.echo(text, nl=False)
            return
        atomic_write(output, text)
        entry |= {"input": source.name, "output": output.name, "output_sha256": file_sha256(output)}
    if dialect is not None:
        console().print(f"Read as {dialect}.")
    console().print(f"Written: {output}. Read the roles before you use it.")


@app.command("check")
@options.takes_reading
def check(
    reading: options.ReadOptions,
    schema: Annotated[Path, typer.Argument(help="Schema file (TOML).")],
    file: Annotated[str | None, typer.Argument(metavar="INPUT", help="Table to check against it.")] = None,
    missing: options.Missing = None,
    as_json: options.Json = False,
) -> None:
    """Check a schema, and a file against it; warn of columns that could undo an anonymization.

    Exits with 3 while the role of a column is undecided.
    """
    from fedanon.data.lint import lint_schema, suspects
    from fedanon.data.schema import Schema

    declared = Schema.read(schema)
    suspected: list[Suspect] = []
    warnings: list[str] = []
    if file is not None:
        table = reading.at(file, schema=schema, missing=missing).load()
        suspected = suspects(table)
        warnings = lint_schema(table, suspected)
    if as_json:
        print_json(
            {
                "schema": str(schema),
                "sha256": declared.sha256,
                "undecided": declared.undecided,
                "suspected": [_entry(suspect) for suspect in suspected],
                "warnings": warnings,
            }
        )
    else:
        _print(declared, _answer(declared, suspected, checked=file is not None), warnings)
    if declared.undecided:
        raise typer.Exit(SchemaError.exit_code)


def _entry(suspect: Suspect) -> dict[str, str | None]:
    judgment = suspect.judgment
    return {
        "column": suspect.column,
        "role": str(suspect.role),
        "looks_like": str(judgment.role),
        "kind": judgment.kind.letter if judgment.kind is not None else None,
        "sign": judgment.sign,
        "reason": judgment.reason,
    }


def _answer(schema: Schema, suspected: Sequence[Suspect], *, checked: bool) -> list[str]:
    """What the check comes to; that a file fits is said only where nothing is left to decide."""
    lines = []
    if schema.undecided:
        lines.append(
            f"Undecided, so that nothing is published: {', '.join(schema.undecided)}. Decide whether each is "
            "identifying, quasi_identifying, sensitive or insensitive."
        )
    if suspected:
        columns = ", ".join(suspect.column for suspect in suspected)
        lines.append(
            f"Published, but to be reviewed, since they look like identifiers or quasi-identifiers: {columns}."
        )
    if checked and not lines:
        lines.append("The file fits the schema.")
    elif checked:
        lines.append("The values of the file are those the schema declares.")
    else:
        lines.append("The schema is well formed.")
    return lines


def _described_type(attribute: Attribute) -> str:
    from fedanon.data.schema import type_name

    unit = getattr(attribute, "unit", "")
    return f"{type_name(attribute)} in {unit}" if unit else type_name(attribute)


def _print(schema: Schema, answer: Sequence[str], warnings: Sequence[str]) -> None:
    rows = [(a.name, str(a.role), _described_type(a)) for a in schema.attributes]
    print_table(schema.name, ["column", "role", "type"], sorted(rows, key=lambda row: row[1] != "undecided"))
    out = console()
    for line in [*answer, *(f"Warning: {warning}" for warning in warnings)]:
        out.print(line, soft_wrap=True)
