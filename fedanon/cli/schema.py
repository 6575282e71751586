"""`fedanon schema`: propose a schema for a file, or check one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, print_json, print_table

app = typer.Typer(help="Propose a schema for a CSV file, or check one.", no_args_is_help=True)


@app.command("infer")
def infer(
    file: Annotated[Path, typer.Argument(help="CSV file with a header line, or .parquet.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where to write it; else it is printed.")
    ] = None,
    encoding: options.Encoding = "auto",
    force: options.Force = False,
    audit: AuditFile = None,
) -> None:
    """Propose a schema: types, ranges and likely roles. A proposal only: read it before you use it."""
    from fedanon.data.infer import PROPOSAL, infer_schema
    from fedanon.data.readers import read_frame
    from fedanon.data.schema_toml import schema_toml
    from fedanon.io.atomic import atomic_write
    from fedanon.io.manifest import file_sha256
    from fedanon.io.outputs import check_output

    check_output(output, inputs=[file], endings=(".toml",), force=force)
    with audited(audit, "schema infer") as entry:
        text = schema_toml(infer_schema(read_frame(file, encoding=encoding), name=file.stem), comment=PROPOSAL)
        if output is None:
            typer.echo(text, nl=False)
            return
        atomic_write(output, text)
        entry |= {"input": file.name, "output": output.name, "output_sha256": file_sha256(output)}
    console().print(f"Written: {output}. Read the roles before you use it.")


@app.command("check")
def check(
    schema: Annotated[Path, typer.Argument(help="Schema file (TOML).")],
    file: Annotated[Path | None, typer.Argument(help="CSV file to check against it.")] = None,
    missing: options.Missing = None,
    encoding: options.Encoding = "auto",
    as_json: options.Json = False,
) -> None:
    """Check a schema, and a file against it; warn of columns that could undo an anonymization."""
    from fedanon.data.lint import lint_schema
    from fedanon.data.schema import Schema

    declared = Schema.read(schema)
    warnings: list[str] = []
    if file is not None:
        table = options.TableSource(file=file, schema=schema, missing=missing, encoding=encoding).load()
        warnings = lint_schema(table)
    if as_json:
        print_json({"schema": str(schema), "sha256": declared.sha256, "warnings": warnings})
        return
    rows = [(a.name, str(a.role), type(a).__name__.lower()) for a in declared.attributes]
    print_table(declared.name, ["column", "role", "type"], rows)
    out = console()
    out.print("The file fits the schema." if file is not None else "The schema is well formed.")
    for warning in warnings:
        out.print(f"Warning: {warning}")
