"""What `anonymize` does for a release that follows others of the same people."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli.publishing import PublishingSource
from fedanon.errors import ConfigError

if TYPE_CHECKING:
    from fedanon.anonymizers.base import Anonymizer
    from fedanon.anonymizers.series import SeriesStep
    from fedanon.data.table import Table
    from fedanon.io.dialect import Dialect
    from fedanon.io.ledger import SeriesLedger
    from fedanon.verification import KnownSeries

PANEL = "Several releases of the same people"
StartsSeries = Annotated[
    bool,
    typer.Option(
        "--series", rich_help_panel=PANEL, help="First release of a series: record next to the schema what it shows."
    ),
]
Previous = Annotated[
    list[Path] | None,
    typer.Option(
        rich_help_panel=PANEL,
        metavar="MANIFEST",
        help="Manifest of an earlier release of the series; repeat it for every one.",
    ),
]


@dataclass(frozen=True)
class OpenSeries:
    """A series whose next release is being made; nobody else makes one meanwhile.

    Parameters
    ----------
    source : the table of this time, and where its release goes.
    ledger : of the releases before.
    """

    source: PublishingSource
    ledger: SeriesLedger

    def release(self, anonymizer: Anonymizer, table: Table, seed: int) -> tuple[SeriesStep, float]:
        """The next release, and how many seconds it took."""
        from fedanon.anonymizers.series import release_next, start_history

        history = self.ledger.history or start_history(anonymizer, table.schema)
        people = self.ledger.pseudonyms(self.source.source.person_ids(table.schema), table)
        begun = time.perf_counter()
        return release_next(anonymizer, table, people, history, rng=seed), time.perf_counter() - begun

    def write(self, step: SeriesStep, dialect: Dialect | None) -> dict[str, Any]:
        """Note the release in the ledger, then write it; returns the facts of the file."""
        from fedanon.io.ledger import settle_pending

        assert self.source.output is not None
        announce = self.ledger.announce(step.release, self.source.output)
        facts = self.source.write(step.release, step.table, dialect, announce=announce)
        settle_pending(self.ledger.path)
        return {**facts, "series": step.claim.facts, "ledger": str(self.ledger.path)}


@contextmanager
def open_series(source: PublishingSource, starts: bool, previous: Sequence[Path]) -> Iterator[OpenSeries | None]:
    """The series a release belongs to, locked while the block runs; None if it belongs to none."""
    from fedanon.data.schema import Schema
    from fedanon.io.atomic import held
    from fedanon.io.ledger import SeriesLedger, ledger_path
    from fedanon.io.manifest import Manifest

    if not starts and not previous:
        yield None
        return
    if starts and previous:
        raise ConfigError("--series begins a series, --previous continues one; give one of them.")
    if source.file is None or source.schema is None or (starts and source.output is None):
        raise ConfigError("A series of releases needs an input file and --schema, and -o to begin with.")
    if source.keep_order:
        raise ConfigError("--keep-order would show which rows are counterfeit; a series is written in random order.")
    schema = source.schema
    declared = Schema.read(schema)
    if declared.needs_key:
        raise ConfigError(
            "Pseudonyms and shifted dates would join the releases of a series: give a schema without them."
        )
    with held(ledger_path(schema)):
        digest = declared.sha256
        ledger = SeriesLedger.start(schema, digest) if starts else SeriesLedger.read(schema, digest)
        ledger.check_previous([Manifest.read(path) for path in previous])
        yield OpenSeries(source, ledger)


def known_series(release: Path, schema: Path | None, previous: Sequence[Path] | None) -> KnownSeries | None:
    """The series of a released file, if its earlier releases are named."""
    from fedanon.io.manifest import Manifest
    from fedanon.verification import KnownSeries

    if not previous:
        return None
    if schema is None:
        raise ConfigError("--previous needs --schema: the ledger of the series lies beside it.")
    manifest = Manifest.beside(release)
    if manifest is None:
        raise ConfigError(f"--previous needs the manifest of {release.name} beside it.")
    return KnownSeries.read(schema, manifest, previous)


def earlier_files(previous: Sequence[Path]) -> list[Path]:
    """The manifests of earlier releases and the files they describe, none of which is written over."""
    from fedanon.io.outputs import MANIFEST

    return [*previous, *(path.with_name(path.name.removesuffix(MANIFEST)) for path in previous)]


def series_lines(result: dict[str, Any]) -> list[str]:
    """What a release costs and promises beside others, for people."""
    if "series" not in result:
        return []
    facts = result["series"]
    held = sum(facts["held_back"].values())
    reasons = "".join(f"; {count} {reason}" for reason, count in facts["held_back"].items())
    return [
        f"Release {facts['releases']} of a series: {facts['counterfeit_rows']} counterfeit rows, {held} people held "
        f"back{reasons}.",
        f"Written: {result['ledger']}, which says what was shown for whom. Keep it and its key secret.",
    ]
