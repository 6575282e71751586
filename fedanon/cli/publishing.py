"""What the commands that publish share: where the release goes, and how the file is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.errors import ConfigError, DataError

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.io.dialect import Dialect
    from fedanon.io.release_file import ColumnSource
    from fedanon.release.release import Release

FILE = "The file"


@dataclass(frozen=True, kw_only=True)
class PublishingSource(options.TableSource):
    """A table, and the file its release is written to."""

    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where to write the release: .csv, .tsv, .txt, .xlsx, .parquet, .ndjson."),
    ] = None
    force: options.Force = False
    keep_order: Annotated[
        bool,
        typer.Option(
            "--keep-order",
            rich_help_panel=FILE,
            help="Keep the rows in the order of the input; by default the order is random.",
        ),
    ] = False
    row_key: Annotated[
        Path | None,
        typer.Option(rich_help_panel=FILE, help="Also write which input row each row shows (JSON); keep it secret."),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(rich_help_panel=FILE, help="Field separator: , ; | or tab; by default that of the input."),
    ] = None
    decimal: Annotated[
        str | None, typer.Option(rich_help_panel=FILE, help="Decimal mark: . or , (by default that of the input).")
    ] = None
    encoding_out: Annotated[
        str | None, typer.Option(rich_help_panel=FILE, help="Encoding of the release; by default that of the input.")
    ] = None
    to_table: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=FILE,
            metavar="NAME",
            help="Also write the release to this new table in the database it was read from.",
        ),
    ] = None
    formula_guard: Annotated[
        bool,
        typer.Option(
            "--formula-guard/--no-formula-guard",
            rich_help_panel=FILE,
            help="Put an apostrophe before text that a spreadsheet would execute.",
        ),
    ] = True

    def check_outputs(self, *more: Path | None) -> None:
        """Raise ConfigError unless the release may be written; ``more`` is read too."""
        from fedanon.io.outputs import check_output, check_release_output, manifest_path

        read = [*self.inputs, *more]
        check_release_output(self.output, inputs=read, force=self.force)
        if self.output is None:
            given = ("row_key", "separator", "decimal", "encoding_out", "keep_order", "to_table")
            if any(getattr(self, name) for name in given):
                raise ConfigError(f"{', '.join(f'--{name}' for name in given).replace('_', '-')} go with -o.")
            return
        if self.to_table is not None:
            self._check_table(self.to_table)
        written = [self.output, manifest_path(self.output)]
        check_output(self.row_key, inputs=[*read, *written], endings=(".json", ".key"), force=self.force)

    def _check_table(self, name: str) -> None:
        from fedanon.io.sql import is_database, refuse_table

        if not is_database(self.file):
            raise ConfigError("--to-table goes with a database as input.")
        refuse_table(str(self.file), name)

    def write(
        self,
        release: Release,
        table: Table,
        found: Dialect | None,
        source: ColumnSource | None = None,
        announce: Callable[[str], None] | None = None,
    ) -> dict[str, Any]:
        """Write the release and its manifest; returns the facts of it for people and programs."""
        from fedanon.io.manifest import Manifest
        from fedanon.io.release_file import FileForm, write_release
        from fedanon.io.row_order import random_order
        from fedanon.io.sql import write_new_table

        assert self.output is not None
        order = None if self.keep_order else random_order(len(release))
        form = FileForm(
            dialect=self._dialect(found),
            found=found,
            formula_guard=self.formula_guard,
            keep_order=self.keep_order,
            order=order,
            row_key=self.row_key,
            # ranges that were read off the data are values of the data
            with_schema=self.quasi is None,
            announce=announce,
        )
        written = Manifest.beside(write_release(release, table, self.output, form=form, source=source, overwrite=True))
        assert written is not None
        facts = {"output": str(self.output), "row_order": written.document["row_order"], "changes": written.changes}
        if self.to_table is not None:
            frame = release.to_frame()
            try:
                write_new_table(str(self.file), self.to_table, frame if order is None else frame.iloc[order])
            except DataError as error:
                raise DataError(f"{error} The file {self.output.name} is written and complete.") from None
            facts["table"] = self.to_table
        return facts | ({} if self.row_key is None else {"row_key": str(self.row_key)})

    def _dialect(self, found: Dialect | None) -> Dialect:
        """That of the input, with what was asked for."""
        from fedanon.io.dialect import Dialect

        assert self.output is not None
        dialect = found or Dialect()
        if self.output.suffix.lower() == ".tsv":
            dialect = replace(dialect, separator="\t")
        given: dict[str, Any] = {"separator": self.separator, "decimal": self.decimal, "encoding": self.encoding_out}
        given["separator"] = options.TABS.get(self.separator or "", self.separator)
        return replace(dialect, **{name: value for name, value in given.items() if value is not None})


def takes_publishing_source(command: options.Command) -> options.Command:
    """:func:`options.takes_table_source` with the options of a release."""
    return options.takes_table_source(command, PublishingSource)


def written_lines(result: Mapping[str, Any]) -> list[str]:
    """What was written, and what was changed on the way, for people."""
    if "output" not in result:
        return []
    lines = [f"Changed in the file: {describe_change(change)}" for change in result["changes"]]
    order = {"kept": "in the order of the input", "grouped": "group by group"}.get(
        result["row_order"], "in random order"
    )
    lines.append(f"Written: {result['output']} and its manifest, rows {order}.")
    if "table" in result:
        lines.append(f"Written: the new table {result['table']} of the database, with the same rows in the same order.")
    if "row_key" in result:
        lines.append(f"Written: {result['row_key']}, which says whose row is whose. Keep it secret.")
    return lines


def describe_change(change: Mapping[str, Any]) -> str:
    """A change in a file as a sentence."""
    if change["kind"] != "formula guard":
        names = {"\n": "LF", "\r\n": "CR LF", "\t": "tab"}
        before, after = (names.get(str(change[end]), str(change[end])) for end in ("from", "to"))
        return f"{change['kind']} {after} instead of {before}."
    cells = ", ".join(f"{name} ({count:,} cells)" for name, count in change["cells"].items())
    heads = f"{len(change['names'])} column names" if change["names"] else ""
    where = " and ".join(filter(None, (cells, heads)))
    return f"an apostrophe before text like a formula in {where}; --no-formula-guard writes it as it is."
