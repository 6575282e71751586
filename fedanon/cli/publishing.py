"""What the commands that publish share: where the release goes, and how the file is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.errors import ConfigError

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
        Path | None, typer.Option("-o", "--output", help="Where to write the release: .csv, .tsv, .txt or .parquet.")
    ] = None
    force: options.Force = False
    keep_order: Annotated[
        bool,
        typer.Option("--keep-order", rich_help_panel=FILE, help="Rows in the order of the input; else it is random."),
    ] = False
    row_key: Annotated[
        Path | None,
        typer.Option(rich_help_panel=FILE, help="Also write which input row each row shows (JSON); keep it secret."),
    ] = None
    separator: Annotated[
        str | None, typer.Option(rich_help_panel=FILE, help="Of the fields: , ; | or tab. That of the input else.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option(rich_help_panel=FILE, help="Decimal mark: . or , (that of the input else).")
    ] = None
    encoding_out: Annotated[
        str | None, typer.Option(rich_help_panel=FILE, help="Encoding of the release; that of the input else.")
    ] = None
    formula_guard: Annotated[
        bool,
        typer.Option(
            "--formula-guard/--no-formula-guard",
            rich_help_panel=FILE,
            help="An apostrophe before text that a spreadsheet would run.",
        ),
    ] = True

    def check_outputs(self, *more: Path | None) -> None:
        """Raise ConfigError unless the release may be written; ``more`` is read too."""
        from fedanon.io.outputs import check_output, check_release_output, manifest_path

        read = [*self.inputs, *more]
        check_release_output(self.output, inputs=read, force=self.force)
        if self.output is None:
            given = [name for name in ("row_key", "separator", "decimal", "encoding_out") if getattr(self, name)]
            if given or self.keep_order:
                raise ConfigError("--keep-order, --row-key, --separator, --decimal and --encoding-out go with -o.")
            return
        written = [self.output, manifest_path(self.output)]
        check_output(self.row_key, inputs=[*read, *written], endings=(".json", ".key"), force=self.force)

    def write(
        self, release: Release, table: Table, found: Dialect | None, source: ColumnSource | None = None
    ) -> dict[str, Any]:
        """Write the release and its manifest; returns the facts of it for people and programs."""
        from fedanon.io.manifest import Manifest
        from fedanon.io.release_file import FileForm, write_release

        assert self.output is not None
        form = FileForm(
            dialect=self._dialect(found),
            found=found,
            formula_guard=self.formula_guard,
            keep_order=self.keep_order,
            row_key=self.row_key,
            # ranges that were read off the data are values of the data
            with_schema=self.quasi is None,
        )
        written = Manifest.beside(write_release(release, table, self.output, form=form, source=source))
        assert written is not None
        facts = {"output": str(self.output), "row_order": written.document["row_order"], "changes": written.changes}
        return facts | ({} if self.row_key is None else {"row_key": str(self.row_key)})

    def _dialect(self, found: Dialect | None) -> Dialect:
        """That of the input, with what was asked for."""
        from fedanon.io.dialect import Dialect

        assert self.output is not None
        dialect = found or Dialect()
        if self.output.suffix.lower() == ".tsv":
            dialect = replace(dialect, separator="\t")
        given = {"separator": self.separator, "decimal": self.decimal, "encoding": self.encoding_out}
        given["separator"] = {"tab": "\t", "\\t": "\t"}.get(self.separator or "", self.separator)
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
