"""Evidence: what can be learned about a release, from its file and the files next to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedanon.anonymizers import ANONYMIZERS
from fedanon.anonymizers.base import Anonymizer
from fedanon.attacks.context import AttackContext
from fedanon.attacks.suite import AttackReport, run_attacks, select_attacks
from fedanon.data.lint import Lookalike, safe_harbor
from fedanon.data.schema import Schema
from fedanon.data.table import Table
from fedanon.errors import FedanonError
from fedanon.fields import build, listed
from fedanon.io.manifest import Manifest, file_sha256
from fedanon.io.release_file import ALL, read_release
from fedanon.io.row_order import read_row_key
from fedanon.privacy.models.population import Population
from fedanon.release.conclusion import Conclusion, ReleaseFinding, conclude
from fedanon.release.exposure import Exposure, measure_exposure
from fedanon.release.reconstruction import reconstruct
from fedanon.release.release import Release
from fedanon.release.verdicts import OverReleases, Promise, Verdict, claimed_models, evaluate_claim
from fedanon.release.view import FileView
from fedanon.report.privacy.chain import is_perturbing_step
from fedanon.report.privacy.language import Language
from fedanon.sdc.methods.base import Perturbative
from fedanon.types import IndexArray, IntArray
from fedanon.verification.known_release import (
    KnownRelease,
    Matching,
    with_known_facts,
    with_masked_columns,
)
from fedanon.verification.known_series import KnownSeries

#: seed of the attacks
SEED = 0


@dataclass(frozen=True, eq=False)
class ReleaseEvidence:
    """A released file with everything that is known about it.

    Parameters
    ----------
    path : the released file.
    schema : of the original table.
    released : the file, read; in the order of the original where its rows are matched.
    manifest : next to the file, if there is one.
    table : the original, if it is given.
    required : what is required of the release beyond what its manifest claims.
    population : the people among whom an attacker searches, if given.
    files : the files the report was made from, with what they are.
    matching : how the rows of the file were matched with the original.
    order : that of a row key, if it is given.
    series : the releases it belongs to, if they are given.
    """

    path: Path
    schema: Schema
    released: FileView
    manifest: Manifest | None = None
    table: Table | None = None
    required: Sequence[Promise] = ()
    population: Population | None = None
    files: tuple[tuple[str, Path], ...] = ()
    matching: Matching = "alone"
    order: IndexArray | None = None
    series: KnownSeries | None = None

    @classmethod
    def from_file(cls, path: Path, schema: Schema, **more: Any) -> ReleaseEvidence:
        """Read the release and its manifest."""
        manifest, table = Manifest.beside(path), more.get("table")
        released = read_release(path, schema, also=ALL)
        key = more.pop("row_key", None)
        order = None if key is None else read_row_key(key, file_sha256(path))
        known = with_known_facts(released, table, manifest, order)
        return cls(path, schema, known.view, manifest, matching=known.matching, order=order, **more)

    # ---- people and classes ---------------------------------------------------------------------

    @property
    def matched(self) -> Table | None:
        """The original, if every row of the release is known to show one of its rows."""
        return self.table if KnownRelease(self.released, self.matching).is_matched else None

    @property
    def persons(self) -> IntArray | None:
        """The person of every row, where the original says."""
        return self.released.persons

    @property
    def counts_people(self) -> bool:
        """Whether people are counted: they are known, or every row is one."""
        return self.released.knows_people

    def unit_name(self, say: Language, texts: str = "unit") -> str:
        """What is counted, people or records, in the words of a language."""
        return say(f"{texts}.{self.released.unit}")

    @cached_property
    def exposure(self) -> Exposure:
        """What the published columns give away together."""
        return measure_exposure(self.released)

    @cached_property
    def lookalikes(self) -> list[Lookalike]:
        """The columns that look like identifiers."""
        return safe_harbor(self.schema, self.released.frame)

    @property
    def people(self) -> IndexArray:
        """People of every class."""
        return self.released.people

    @property
    def n_people(self) -> int:
        """Number of people in the table, or of rows if people are unknown."""
        return len(self.released) if self.persons is None else int(np.unique(self.persons).size)

    @property
    def suppressed(self) -> int:
        """Number of rows of which nothing is published."""
        return int(self.released.suppressed.sum())

    # ---- promises -------------------------------------------------------------------------------

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Verdicts on what is claimed and on what is required."""
        claimed = claimed_models(self.manifest.claim) if self.manifest else []
        models = [*claimed, *(model for model in self.required if model not in claimed)]
        verdicts = evaluate_claim(self.released, models)
        if self.series is None:
            return verdicts
        return [self.series.judge(one) if isinstance(one.model, OverReleases) else one for one in verdicts]

    def conclusion(self, attacks: AttackReport | None = None) -> Conclusion:
        """What is to be said first; ``attacks`` are the results of running them, if they were run."""
        failed = [ReleaseFinding(kind="file_changed")] if self.is_as_written is False else []
        tried = attacks.results if attacks else []
        return conclude(self.released, self.verdicts, exposure=self.exposure, attacks=tried, failed=failed)

    @cached_property
    def sha256(self) -> str:
        """Hash of the released file."""
        return file_sha256(self.path)

    @property
    def is_as_written(self) -> bool | None:
        """Whether the file is the one its manifest describes; None without a manifest."""
        return None if self.manifest is None else self.manifest.expected_sha256 == self.sha256

    @property
    def failed(self) -> bool:
        """Whether a promise is broken or the file was changed."""
        return self.is_as_written is False or any(verdict.holds is False for verdict in self.verdicts)

    # ---- how it was made ------------------------------------------------------------------------

    @property
    def provenance(self) -> dict[str, Any]:
        """Method, parameters, seed, version, hashes; empty without a manifest."""
        return self.manifest.provenance if self.manifest else {}

    @property
    def guarded_cells(self) -> dict[str, int]:
        """The number of cells that got an apostrophe in front, by column."""
        return self.manifest.guarded_cells if self.manifest else {}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of a chain as its manifest lists them; none of a single method."""
        found = self.provenance.get("parameters", {}).get("steps", []) if self.manifest else []
        return [step for step in found if isinstance(step, dict)] if isinstance(found, list) else []

    @property
    def masked(self) -> dict[str, list[str]]:
        """The methods that changed each column which the schema does not call a quasi-identifier."""
        found: dict[str, list[str]] = {}
        for name in self.manifest.masked if self.manifest else []:
            methods = [str(step["method"]) for step in self.steps if name in step.get("changed", {})]
            if methods:
                found[name] = methods
        return found

    @property
    def perturbed(self) -> list[str]:
        """The columns whose values a method drew anew or moved: the width of their cells does not show what is lost."""
        if isinstance(self.anonymizer, Perturbative):
            changed = listed(self.anonymizer.columns) or [a.name for a in self.schema.quasi_identifiers]
            return [] if self.anonymizer.truthful else changed
        return sorted({name for step in self.steps if is_perturbing_step(step) for name in step.get("changed", {})})

    @property
    def row_order(self) -> str:
        """kept, shuffled or grouped; unknown without a manifest."""
        return str(self.manifest.document.get("row_order", "kept")) if self.manifest else "unknown"

    @property
    def declared_types(self) -> dict[str, str]:
        """The type of every column, as its schema declared it when the release was made."""
        columns = self.manifest.document.get("columns", []) if self.manifest else []
        return {column["name"]: column["type"] for column in columns if "type" in column}

    @cached_property
    def anonymizer(self) -> Anonymizer | None:
        """The method, if the manifest names a registered one."""
        try:
            return build(ANONYMIZERS[self.provenance["method"]], self.provenance["parameters"])
        except (KeyError, FedanonError):
            return None

    @cached_property
    def release(self) -> Release | None:
        """The release beside its original, for metrics that need both."""
        return None if self.matched is None else reconstruct(self.released, self.matched)

    @cached_property
    def with_masked(self) -> tuple[Table | None, Release | None]:
        """The original and its release, every column that a chain changed being a quasi-identifier."""
        if self.matched is None or self.manifest is None or not self.masked:
            return self.matched, self.release
        return with_masked_columns(self.path, self.matched, self.manifest, self.order)

    def attacked(
        self, on_attack: Callable[[str], None] = lambda _: None, suite: str = "release"
    ) -> AttackReport | None:
        """Run the attacks of a suite; None without the original."""
        if self.matched is None or self.release is None:
            return None
        seen = () if self.series is None else self.series.seen()
        context = AttackContext(self.matched, self.release, self.anonymizer, SEED, seen)
        return run_attacks(context, select_attacks(suite), on_attack)
