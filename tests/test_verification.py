"""One number, one implementation: a release, its file and the report about it agree, people counted and not rows."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedanon.anonymizers import FixedInterval, Mdav, Mondrian
from fedanon.anonymizers.base import Anonymizer
from fedanon.data.schema import FreeText, Numeric, Role, Schema
from fedanon.data.table import Table
from fedanon.errors import PrivacyViolationError
from fedanon.io import release_file
from fedanon.io.release_file import FileForm, manifest_path, read_release
from fedanon.metrics import evaluate, evaluate_view
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.verdicts import evaluate_claim
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.risks import prosecutor
from fedanon.verification import ORIGINAL_METRICS, VIEW_METRICS, check_release

#: rows in the order of the table; the random order has tests of its own, test_row_order.py
write_release = partial(release_file.write_release, form=FileForm(keep_order=True))

SCHEMA = Schema(
    (FreeText("patient", Role.IDENTIFYING), Numeric("age", Role.QUASI_IDENTIFYING, 0, 99, True)), person_id="patient"
)


@pytest.fixture
def visits() -> Table:
    """Sixty visits of twenty people, some of whom come often."""
    patient = np.repeat(np.arange(20), [1, 2, 3, 6] * 5)
    return Table.from_frame(pd.DataFrame({"patient": patient, "age": 20 + patient * 3}).astype(str), SCHEMA)


def test_a_file_shows_the_numbers_of_its_release(visits: Table, tmp_path: Path) -> None:
    release = Mondrian(k=3).anonymize(visits, rng=0)
    path = write_release(release, visits, tmp_path / "visits.csv")
    ours = evaluate(visits, release, VIEW_METRICS)
    assert ours["average_class_size"] == 20 / release.classes.count  # people, of whom there are 20, not rows
    checked = check_release(path, SCHEMA, table=visits)
    assert {name: checked.metrics[name] for name in ours} == pytest.approx(ours)
    known = prosecutor(ReleaseEvidence.from_file(path, SCHEMA, table=visits))
    assert known is not None
    assert known.average == pytest.approx(ours["marketer_risk"])
    assert known.highest == pytest.approx(ours["prosecutor_risk"])


@pytest.mark.parametrize("method", [Mondrian(k=3), Mdav(k=3), FixedInterval(n_bins=4)])
def test_a_file_shows_the_loss_of_its_release(method: Anonymizer, tmp_path: Path) -> None:
    """Also where single numbers are published, which a file does not tell from intervals of one point."""
    schema = Schema(tuple(Numeric(name, Role.QUASI_IDENTIFYING, 0, 99, True) for name in ("age", "weight")))
    rows = np.random.default_rng(0).integers(0, 99, (60, 2))
    table = Table.from_frame(pd.DataFrame(rows, columns=["age", "weight"]), schema)
    release = method.anonymize(table, rng=0)
    checked = check_release(write_release(release, table, tmp_path / "out.csv"), schema, table=table)
    ours = evaluate(table, release, ORIGINAL_METRICS)
    assert ours["ncp_published"] > 0
    assert {name: checked.metrics[name] for name in ours} == pytest.approx(ours)


def test_without_the_original_rows_are_counted_and_promises_left_open(visits: Table, tmp_path: Path) -> None:
    release = Mondrian(k=3).anonymize(visits, rng=0)
    view = read_release(write_release(release, visits, tmp_path / "visits.csv"), SCHEMA)
    assert not view.knows_people
    assert evaluate_view(view, ["average_class_size"]) == {"average_class_size": 60 / view.classes.count}
    kept, broken = evaluate_claim(view, [KAnonymity(k=3), KAnonymity(k=60)])
    assert (kept.holds, kept.doubt) == (None, "people")
    assert broken.holds is False


def test_what_is_required_of_a_file_is_evaluated_on_its_rows(visits: Table, tmp_path: Path) -> None:
    path = write_release(Mondrian(k=3).anonymize(visits, rng=0), visits, tmp_path / "visits.csv")
    checked = check_release(path, SCHEMA, required=[KAnonymity(k=4)])
    assert [(str(verdict.model), verdict.holds) for verdict in checked.verdicts] == [
        ("4-anonymity", True), ("3-anonymity", None)
    ]  # fmt: skip
    with pytest.raises(PrivacyViolationError, match=r"does not keep 60-anonymity: .* \(the smallest holds \d+\)"):
        check_release(path, SCHEMA, required=[KAnonymity(k=60)])


def test_rows_in_another_order_are_not_compared_with_the_original(visits: Table, tmp_path: Path) -> None:
    path = write_release(Mondrian(k=3).anonymize(visits, rng=0), visits, tmp_path / "visits.csv")
    manifest = manifest_path(path)
    document = json.loads(manifest.read_text())
    document["claim"] = {"model": "differential privacy", "epsilon": 1.0, "delta": 0.0}
    manifest.write_text(json.dumps(document))
    checked = check_release(path, SCHEMA, table=visits)
    assert "truthfulness" not in checked.metrics
    assert checked.metrics["average_class_size"] == 60 / checked.metrics["classes"]
    assert [verdict.doubt for verdict in checked.verdicts] == ["mechanism"]


def test_a_release_that_counts_other_people_is_rejected(visits: Table, tmp_path: Path) -> None:
    release = replace(Mondrian(k=3).anonymize(visits, rng=0), persons=None)
    with pytest.raises(PrivacyViolationError, match="other people"):
        write_release(release, visits, tmp_path / "visits.csv")
