"""Options: those derived from the settings of a run, those several commands share, and those that name a table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import click
import typer
from typer.core import TyperCommand

from fedanon.errors import ConfigError
from fedanon.fields import default_of, describe, takes_table, warn_renamed
from fedanon.learning.settings import PRIVACY, DpSettings, RunSettings

if TYPE_CHECKING:
    import pandas as pd

    from fedanon.data.schema import Schema
    from fedanon.data.table import Table
    from fedanon.datasets.source import DataSource
    from fedanon.io.dialect import Dialect
    from fedanon.io.parquet_source import ParquetSource

# ---- Options derived from the settings of a run --------------------------------------------------

Command = Callable[..., None]
Kind = TypeVar("Kind", bound="ReadOptions")
DP = "dp_"


def takes_run_settings(
    *names: str, table: type[TableSource] | None = None, **defaults: Any
) -> Callable[[Command], Command]:
    """Give a command an option for every setting of a run, or for those named, before its own options.

    The command receives the chosen settings as one mapping, its first argument; ``defaults`` replace those of the
    settings. A setting's former names are accepted too, hidden and with a warning. With ``table``, the settings
    `dataset` and `source` come from the options of a table of this kind; `dataset` is None where none is named.
    """
    chosen = [entry for entry in fields(RunSettings) if not names or entry.name in names]
    if table is None:
        derived = [each for entry in chosen for each in _parameters(entry, defaults)]
        return lambda command: _with_options(command, derived, lambda given: _chosen_settings(chosen, given))
    chosen = [entry for entry in chosen if entry.name not in ("dataset", "source")]
    derived = [*_table_parameters(table), *(each for entry in chosen for each in _parameters(entry, defaults))]

    def gather(given: Mapping[str, Any]) -> dict[str, Any]:
        return _chosen_settings(chosen, given) | _table_source(table, given).run_settings()

    return lambda command: _with_options(command, derived, gather)


def _with_options(
    command: Command, derived: list[inspect.Parameter], gather: Callable[[Mapping[str, Any]], Any]
) -> Command:
    """A command with more options before its own; what ``gather`` makes of them is its first argument."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def run(**given: Any) -> None:
        command(gather(given), **{each.name: given[each.name] for each in own})

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    in_order = sorted([*derived, *own], key=lambda each: each.default is not inspect.Parameter.empty)
    run.__signature__ = inspect.Signature(in_order)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in (*derived, *own)}
    return run


#: the registries whose names a help text may list, by the word in braces that stands for them
LISTED = {
    "models": "fedanon.models:MODELS",
    "strategies": "fedanon.learning.strategies:STRATEGIES",
    "malicious_attacks": "fedanon.learning.malicious:MALICIOUS_ATTACKS",
}


def with_names(text: str) -> str:
    """A help text with the names of what is registered in place of the words in braces."""
    for word in [word for word in LISTED if f"{{{word}}}" in text]:
        module, _, registry = LISTED[word].partition(":")
        text = text.replace(f"{{{word}}}", ", ".join(getattr(import_module(module), registry).names()))
    return text


class ListingCommand(TyperCommand):
    """A command whose help lists what is registered: ``{models}`` in an option's help becomes their names.

    The registries are filled only when the help is shown, so that `fedanon --help` stays instant.
    """

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Fill in the names, then show the help as ever."""
        for option in self.params:
            if getattr(option, "help", None):
                option.help = with_names(option.help)  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


def setting_option(name: str) -> Any:
    """The option of one setting of a run, for a command that has few of them."""
    entry = next(entry for entry in fields(RunSettings) if entry.name == name)
    return _option(entry, get_type_hints(RunSettings)[name], _flag(entry), None)


def _parameters(entry: Field[Any], defaults: Mapping[str, Any]) -> list[inspect.Parameter]:
    """The options of a setting as parameters of a command: its own, and one per former name."""
    if entry.name == "source":
        return []  # the options of a table say it
    if entry.name == "dp_settings":
        return _privacy_parameters()
    hint, group = get_type_hints(RunSettings)[entry.name], entry.metadata["group"]
    default = None if takes_table(hint) else defaults.get(entry.name, default_of(entry))
    former = [alias for alias in entry.metadata["aliases"] if not takes_table(hint)]
    return [
        _parameter(entry.name, hint, _option(entry, hint, _flag(entry), group), default=default),
        *(_parameter(name, hint, _option(entry, hint, f"--{_dashed(name)}", group, hidden=True)) for name in former),
    ]


def _privacy_parameters() -> list[inspect.Parameter]:
    """One option per field of the privacy budget."""
    hints = get_type_hints(DpSettings)
    seeded = typer.Option("--dp-seeded", hidden=True, help="Former name of --dp-randomness seeded.")
    parameters = []
    for part in fields(DpSettings):
        option = _option(part, hints[part.name], f"--{_dashed(DP + part.name)}", PRIVACY)
        parameters.append(_parameter(DP + part.name, hints[part.name], option))
    return [*parameters, _parameter("dp_seeded", bool, seeded, default=False)]


def _parameter(name: str, hint: Any, option: Any, default: Any = None) -> inspect.Parameter:
    kind: Any = list[str] if takes_table(hint) else hint if hint in (int, float, bool) else str
    annotation: Any = Annotated[kind if default is not None else kind | None, option]
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def _option(entry: Field[Any], hint: Any, flag: str, group: str | None, *, hidden: bool = False) -> Any:
    text = entry.metadata["help"]
    more: dict[str, Any] = {}
    if takes_table(hint):
        more, text = {"metavar": "NAME=VALUE"}, f"{text}; may be repeated"
    elif hint in (int, float):
        more = {"min": entry.metadata["at_least"], "max": entry.metadata["at_most"]}
    elif hint not in (str, bool):
        text = f"{text}: {describe(entry, hint)}"
    return typer.Option(flag, help=f"{text[0].upper()}{text[1:]}.", rich_help_panel=group, hidden=hidden, **more)


def _flag(entry: Field[Any]) -> str:
    given: str = entry.metadata.get("option", "")
    return given or f"--{_dashed(entry.name.replace('_settings', '_set'))}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _chosen_settings(entries: list[Field[Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the options by the names of the settings; tables are read, former names are replaced."""
    hints = get_type_hints(RunSettings)
    chosen: dict[str, Any] = {}
    for entry in entries:
        if entry.name == "source":
            chosen[entry.name] = {}
        elif entry.name == "dp_settings":
            chosen[entry.name] = _privacy_budget(given)
        elif takes_table(hints[entry.name]):
            chosen[entry.name] = parse_settings(given[entry.name], _flag(entry))
        else:
            chosen[entry.name] = given[entry.name]
            for name in entry.metadata["aliases"]:
                if given[name] is not None:
                    warn_renamed(f"--{_dashed(name)}", _flag(entry))
                    chosen[entry.name] = given[name]
    return chosen


def _privacy_budget(given: Mapping[str, Any]) -> dict[str, Any]:
    budget = {entry.name: given[DP + entry.name] for entry in fields(DpSettings) if given[DP + entry.name] is not None}
    if given["dp_seeded"]:
        warn_renamed("--dp-seeded", "--dp-randomness seeded")
        budget["randomness"] = "seeded"
    return budget


def parse_settings(settings: list[str] | None, option: str = "--set") -> dict[str, str]:
    """``name=value`` texts as a mapping."""
    pairs = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"{option} takes NAME=VALUE; {name!r} has no '='.")
        pairs[name.strip()] = value.strip()
    return pairs


# ---- Options several commands share --------------------------------------------------------------

Missing = Annotated[
    str | None,
    typer.Option(help="Missing quasi-identifiers: error (default), category (a separate value), wildcard."),
]
Encoding = Annotated[str, typer.Option(help="Encoding of the file; `auto` detects it.")]
Method = Annotated[str | None, typer.Option(help="Anonymizer; see `fedanon methods`. mondrian by default.")]
MinimumK = Annotated[int | None, typer.Option(help="Minimum number of people (or records) sharing a published record.")]
Requirement = Annotated[
    str | None, typer.Option(help="What classes must satisfy beyond k: l=2:COLUMN,t=0.3:COLUMN; may include k itself.")
]
Settings = Annotated[list[str] | None, setting_option("method_settings")]
Seed = Annotated[int, setting_option("seed")]
RowKey = Annotated[
    Path | None, typer.Option("--row-key", help="The row key of the release, if its rows are in random order.")
]
PersonKeyFile = Annotated[
    Path | None, typer.Option("--key", help="The key for pseudonyms and shifted dates; see `fedanon keys`.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output files, but never files that are read.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


# ---- The table a command works on ----------------------------------------------------------------


INPUT = (
    "A table: CSV, Excel (.xlsx), Parquet or FHIR (.ndjson) file, a folder with one file per node, the address of a "
    "database (sqlite:///FILE, duckdb:///FILE, postgresql://HOST/NAME), or a data set by name."
)
TABLE = "The table"
#: how a tab is named, which few terminals let one type
TABS = {"tab": "\t", "\\t": "\t"}
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        rich_help_panel=TABLE,
        help="Whether a CSV file or a sheet begins with column names; otherwise columns are named c1, c2, ...",
    ),
]
Sheet = Annotated[str | None, typer.Option(rich_help_panel=TABLE, help="The sheet of an Excel workbook.")]
Query = Annotated[str | None, typer.Option(rich_help_panel=TABLE, help="The SELECT that reads rows from a database.")]
View = Annotated[
    list[Path] | None,
    typer.Option(
        rich_help_panel=TABLE,
        help="A SQL-on-FHIR view (JSON) that turns resources into rows; further views are joined on shared columns.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """The options that say how a table is read."""

    encoding: Encoding = "auto"
    separator_in: Annotated[
        str | None,
        typer.Option(rich_help_panel=TABLE, help="Field separator of a CSV file: , ; | or tab; detected by default."),
    ] = None
    decimal_in: Annotated[
        str | None, typer.Option(rich_help_panel=TABLE, help="Decimal mark of a CSV file, . or ,; else detected.")
    ] = None
    header: Header = None
    sheet: Sheet = None
    query: Query = None
    view: View = None

    def at(self, file: str | None, **more: Any) -> TableSource:
        """The options of a table that is read in this way."""
        return TableSource(file=file, **more, **vars(self))


def takes_reading(command: Command) -> Command:
    """Give a command the options that say how its table is read; it receives them as its first argument."""
    return _with_options(command, _field_parameters(ReadOptions), lambda given: _gathered(ReadOptions, given))


@dataclass(frozen=True, kw_only=True)
class TableSource(ReadOptions):
    """The options that say where a command's table comes from; what they mean is :class:`DataSource`'s."""

    file: Annotated[str | None, typer.Argument(metavar="INPUT", help=INPUT)] = None
    dataset: Annotated[
        str | None, typer.Option(help="A data set by name instead of a file; see `fedanon data list`.")
    ] = None
    node: Annotated[
        list[str] | None,
        typer.Option(help="One file per node; may be repeated. Or the number of a node of a data set in parts."),
    ] = None
    schema: Annotated[Path | None, typer.Option("--schema", help="Schema of the file (TOML).")] = None
    quasi: Annotated[
        str | None,
        typer.Option("--qi", help="Numeric columns a,b,c (or `all`) as quasi-identifiers, instead of a schema."),
    ] = None
    missing: Missing = None
    key: PersonKeyFile = None

    @property
    def is_given(self) -> bool:
        """Whether any table is named."""
        return bool(self.file or self.dataset or self.node)

    @property
    def inputs(self) -> list[Path]:
        """The files that are read, which no output may be."""
        return self.source.inputs if self.is_given and not self._stored else []

    @property
    def _stored(self) -> bool:
        """Whether one node of a data set in parts is meant."""
        return self.dataset is not None and self.node is not None

    @cached_property
    def source(self) -> DataSource:
        """Where the table is."""
        from fedanon.datasets import DATASETS
        from fedanon.datasets.source import DataSource

        given = [each for each in (self.file, self.dataset, None if self._stored else self.node) if each]
        if len(given) != 1:
            raise ConfigError("Give either an input file or --dataset NAME, or a --node FILE for every node.")
        named = self.file or self.dataset
        if self.dataset is not None:
            self._refuse_file_options()
            DATASETS[self.dataset]  # an unknown name is answered with the known ones
        return DataSource(
            data=(named,) if named else tuple(self.node or ()),
            schema=str(self.schema or ""),
            key=str(self.key or ""),
            quasi=self.quasi or "",
            missing=self.missing or "error",  # type: ignore[arg-type]
            encoding=self.encoding,
            separator=TABS.get(self.separator_in or "", self.separator_in or ""),
            decimal=self.decimal_in or "",
            header=self.header,
            sheet=self.sheet or "",
            query=self.query or "",
            views=tuple(map(str, self.view or ())),
        )

    def _refuse_file_options(self) -> None:
        options = ("schema", "key", "quasi", "missing", *(entry.name for entry in fields(ReadOptions)[1:]))
        flags = {name: f"--{'qi' if name == 'quasi' else _dashed(name)}" for name in options}
        given = [flags[name] for name in options if getattr(self, name) is not None]
        if given:
            raise ConfigError(f"{', '.join(given)} goes with an input file; a data set brings its own schema.")

    def load(self, also: Collection[str] | None = None) -> Table:
        """Read the table; ``also`` names the columns needed besides the quasi-identifiers, and None takes all.

        Only a Parquet file is read by columns.
        """
        return self.load_with_dialect(also)[0]

    def load_with_dialect(self, also: Collection[str] | None = None) -> tuple[Table, Dialect | None]:
        """Read the table, and say in which dialect a CSV file is written."""
        from fedanon.datasets import load
        from fedanon.io.parquet import is_parquet

        if self._stored:
            self._refuse_file_options()
            return load(str(self.dataset), node=self._node_number()), None
        if also is not None and self.dataset is None and is_parquet(self.file):
            missing: Any = self.missing or "error"
            return parquet_source(Path(str(self.file)), self.schema, self.quasi, self.key).table(
                missing=missing, also=also
            ), None
        return self.source.load_with_dialect()

    def _node_number(self) -> int:
        if self.node is None or len(self.node) != 1 or not self.node[0].isdigit():
            raise ConfigError("--node takes one number with --dataset; a file per node goes without it.")
        return int(self.node[0])

    def run_settings(self) -> dict[str, Any]:
        """The settings of a run that say which table it is about; `dataset` is None where none is named."""
        if not self.is_given:
            self._refuse_file_options()
            return {"dataset": None, "source": {}}
        if self._stored:
            raise ConfigError("--node with a number names one part of a data set; a federation has all of them.")
        own = {} if self.source.is_named else self.source.absolute().to_settings()
        return {"dataset": self.source.name, "source": own}


def takes_table_source(command: Command, kind: type[TableSource] = TableSource) -> Command:
    """Give a command the options that name a table, before its own; it receives a TableSource as its first argument.

    ``kind`` may have more fields, which are options too.
    """
    return _with_options(command, _table_parameters(kind), lambda given: _table_source(kind, given))


def _table_parameters(kind: type[TableSource]) -> list[inspect.Parameter]:
    former = typer.Option("--client", hidden=True, help="Former name of --node.", min=0)
    return [*_field_parameters(kind), _parameter("client", int, former)]


def _field_parameters(kind: type[ReadOptions]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    anywhere = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [inspect.Parameter(e.name, anywhere, default=e.default, annotation=hints[e.name]) for e in fields(kind)]


def _table_source(kind: type[TableSource], given: Mapping[str, Any]) -> TableSource:
    if given["client"] is not None:
        warn_renamed("--client", "--node")
        given = {**given, "node": [str(given["client"])]}
    return _gathered(kind, given)


def _gathered(kind: type[Kind], given: Mapping[str, Any]) -> Kind:
    return kind(**{entry.name: given[entry.name] for entry in fields(kind)})


def parquet_source(file: Path, schema: Path | None, quasi: str | None, key: Path | None = None) -> ParquetSource:
    """A Parquet file with its schema or chosen columns; what is read of it is for the caller to say."""
    from fedanon.io.parquet import read_frame
    from fedanon.io.parquet_source import ParquetSource

    return ParquetSource.open(file, _declared(schema, quasi, key) or _all_numeric(read_frame(file), quasi))


def _declared(schema: Path | None, quasi: str | None, key: Path | None = None) -> Schema | None:
    from fedanon.data.schema import Schema

    if (schema is None) == (quasi is None):
        raise ConfigError("Give either --schema FILE or --qi COLUMNS. `fedanon schema infer` proposes a schema.")
    if schema is None:
        return None
    return with_key(Schema.read(schema), key)


def with_key(schema: Schema, key: Path | None) -> Schema:
    """The schema with the key of a file, if one is given."""
    from fedanon.io.person_key import read_person_key

    return schema if key is None else schema.with_key(read_person_key(key))


def _all_numeric(frame: pd.DataFrame, quasi: str | None) -> Schema:
    from fedanon.data.infer import numeric_schema

    assert quasi is not None
    return numeric_schema(frame, "all" if quasi == "all" else [name.strip() for name in quasi.split(",")])
