"""What `sdc apply` wrote is measured again by `sdc risk`, `check` and `report`, which know its chain."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Outcome, Run

STEPS = ("--step", "additive_noise:cost,c=0.5", "--step", "pram:ward_type,keep=0.6", "--step", "local_suppression:k=3")


@pytest.fixture
def costs(ward: Path, schema: Path) -> tuple[Path, Path]:
    """The ward with a sensitive cost, which three patients lack, and the type of their ward."""
    frame = pd.read_csv(ward, dtype=str)
    frame["cost"] = [str(100 + 13 * i) for i in range(len(frame))]
    frame.loc[:2, "cost"] = ""
    frame["ward_type"] = ["open", "closed", "day"] * (len(frame) // 3) + ["open"] * (len(frame) % 3)
    frame.to_csv(ward, index=False)
    schema.write_text(
        schema.read_text()
        + '[attributes.cost]\nrole = "sensitive"\ntype = "numeric"\nrange = [0, 9999]\n'
        + '[attributes.ward_type]\nrole = "insensitive"\ntype = "categorical"\nvalues = ["open", "closed", "day"]\n'
    )
    return ward, schema


@pytest.fixture
def applied(run: Run, costs: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Outcome]:
    out = tmp_path / "out.csv"
    done = run("sdc", "apply", costs[0], "--schema", costs[1], *STEPS, "--keep-order", "-o", out, "--json")
    assert done.code == 0, done.err
    return out, done


def test_apply_reports_risks_beside_the_original(applied: tuple[Path, Outcome]) -> None:
    found = applied[1].json
    assert found["variables"] == {"keys": ["age", "sex", "unit"], "numbers": ["cost"], "categories": ["ward_type"]}
    risk = found["measured"]["violations_3_sdcmicro"]
    assert risk["modified"] == 0 < risk["original"]
    assert found["measured"]["il2"]["original"] is None
    (one,) = found["randomized"]
    assert one["column"] == "ward_type"
    assert (
        sum(entry["before"] for entry in one["counts"]) == sum(entry["after"] for entry in one["counts"]) == found["n"]
    )
    assert found["steps"][0]["changed"] == {"cost": found["n"] - 3}
    matrix = found["steps"][1]["transitions"]["ward_type"][0]["matrix"]
    assert matrix[0] == pytest.approx([0.6, 0.2, 0.2])


def test_the_manifest_holds_matrices_and_counts(applied: tuple[Path, Outcome]) -> None:
    step = json.loads(Path(f"{applied[0]}.manifest.json").read_text())["provenance"]["parameters"]["steps"][1]
    assert sum(before for before, _ in step["counts"]["ward_type"].values()) == applied[1].json["n"]
    assert step["transitions"]["ward_type"][0]["categories"] == ["open", "closed", "day"]


def test_the_risk_of_what_was_written(run: Run, costs: tuple[Path, Path], applied: tuple[Path, Outcome]) -> None:
    """The identifying column is gone, some keys are '*', and the cost has left its range: the numbers are apply's."""
    out, done = applied
    alone = run("sdc", "risk", out, "--json")
    assert alone.code == 0, alone.err
    assert alone.json["keys"] == ["age", "sex", "unit"]
    keys = pd.read_csv(out, dtype=str)[["age", "sex", "unit"]]
    assert alone.json["silent_cells"] == int(keys.isin(["*", "[0, 110]"]).to_numpy().sum()) > 0
    beside = run(
        "sdc", "risk", out, "--schema", costs[1], "--original", costs[0], "--list", "2", "--threshold", "0.3", "--json"
    )
    assert beside.code == 0, beside.err
    measured = done.json["measured"]
    for k in (2, 3, 5):
        assert beside.json["anonymity"][f"violations_{k}"] == measured[f"violations_{k}"]["modified"]
        assert beside.json["original"]["anonymity"][f"violations_{k}"] == measured[f"violations_{k}"]["original"]
        assert beside.json["anonymity_sdcmicro"][f"violations_{k}"] == measured[f"violations_{k}_sdcmicro"]["modified"]
    assert beside.json["matched"] is True
    assert len(beside.json["above_threshold"]["listed"]) == min(2, beside.json["above_threshold"]["records"])
    assert sum(beside.json["histogram"]["records"]) == beside.json["n"]
    shown = run("sdc", "risk", out, "--schema", costs[1], "--original", costs[0])
    assert "modified" in shown.out
    assert "as sdcMicro counts" in shown.out


def test_check_agrees_with_apply(run: Run, costs: tuple[Path, Path], applied: tuple[Path, Outcome]) -> None:
    out, done = applied
    asked = ("--metrics", "violations_3_sdcmicro,il2")
    found = run("check", out, "--schema", costs[1], "--original", costs[0], *asked, "--json")
    assert found.code == 0, found.err
    assert found.json["truthfulness"] == pytest.approx(done.json["truthfulness"])
    assert found.json["truthfulness"] < 1
    assert found.json["il2"] == pytest.approx(done.json["measured"]["il2"]["modified"])
    assert found.json["violations_3_sdcmicro_original"] == done.json["measured"]["violations_3_sdcmicro"]["original"]
    refused = run("check", out, "--schema", costs[1], *asked)
    assert refused.code == 2
    assert "give --original" in refused.err


def test_the_report_knows_the_chain(
    run: Run, costs: tuple[Path, Path], applied: tuple[Path, Outcome], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    done = run("report", "--privacy", applied[0], "--schema", costs[1], "--original", costs[0], "-o", page)
    assert done.code == 0, done.err
    text = page.read_text()
    assert "Changed by the method, not generalized" in text
    assert "Steps of the chain" in text
    assert "Transition matrix of ward_type" in text
    assert "changed by <code>additive_noise</code>" in text
    assert "Published unchanged" not in text, "the cost is noise, the type of ward random, and the diagnosis guarded"


def test_the_report_takes_roles_from_the_manifest_as_from_the_schema(
    run: Run, costs: tuple[Path, Path], applied: tuple[Path, Outcome]
) -> None:
    """The chain publishes the cost with cells of its own; it is still sensitive, and no quasi-identifier."""
    asked = ("report", "--privacy", applied[0], "--original", costs[0], "--no-attacks", "--json")
    alone, declared = run(*asked), run(*asked, "--schema", costs[1])
    assert alone.code == declared.code == 0, alone.err
    assert alone.json["conclusion"] == declared.json["conclusion"]
    assert alone.json["conclusion"] == applied[1].json["conclusion"], "what apply said when it wrote the file"
    assert alone.json["losses"] == declared.json["losses"]
    risk = run("sdc", "risk", applied[0], "--json").json
    assert [one["column"] for one in risk["diversity"]] == ["diagnosis", "cost"]


def test_a_key_of_the_chain_stays_a_quasi_identifier(run: Run, costs: tuple[Path, Path], tmp_path: Path) -> None:
    """The steward named it among the keys, whatever the schema says."""
    out = tmp_path / "out.csv"
    arguments = ("--keys", "sex,ward_type", "--step", "local_suppression:k=3", "--keep-order", "-o", out)
    assert run("sdc", "apply", costs[0], "--schema", costs[1], *arguments).code == 0
    page = run("report", "--privacy", out, "--json").json
    assert "ward_type" in [one["column"] for one in page["losses"]]


def test_the_report_shows_no_width_of_values_that_were_changed(
    run: Run, costs: tuple[Path, Path], applied: tuple[Path, Outcome]
) -> None:
    """Noise has cells of one point and PRAM those of every category: neither width says what was lost."""
    done = run("report", "--privacy", applied[0], "--original", costs[0], "--no-attacks", "--json")
    losses = {one["column"]: one for one in done.json["losses"]}
    cost, ward = losses["cost"], losses["ward_type"]
    assert [cost[part] for part in ("loss", "exact", "hidden", "measured")] == [None] * 4
    assert [ward[part] for part in ("loss", "exact", "hidden", "measured")] == [None] * 4
    original = pd.read_csv(costs[0])["cost"]
    released = pd.to_numeric(pd.read_csv(applied[0])["cost"], errors="coerce")
    moved = (released - original).abs().mean() / original.std()
    assert cost["moved"] == pytest.approx(moved)
    assert ward["moved"] is None
    assert 0 < ward["true"] < 1
    assert losses["age"]["loss"] is not None


def test_complete_drops_the_rows_that_lack_a_number(run: Run, costs: tuple[Path, Path]) -> None:
    whole = run("sdc", "apply", costs[0], "--schema", costs[1], *STEPS, "--json").json
    part = run("sdc", "apply", costs[0], "--schema", costs[1], *STEPS, "--complete", "--json").json
    assert part["n"] == whole["n"] - 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--keys", "age", "--numbers", "age"], "each named once"),
        (["--metrics", "nonsense"], "nonsense"),
        (["--keys", "patient"], "identifying"),
    ],
)
def test_bad_lists_are_refused(run: Run, costs: tuple[Path, Path], arguments: list[str], message: str) -> None:
    done = run("sdc", "apply", costs[0], "--schema", costs[1], "--step", "local_suppression", *arguments)
    assert done.code == 2
    assert message in done.err


def test_lists_are_those_of_the_manifest(run: Run, costs: tuple[Path, Path], applied: tuple[Path, Outcome]) -> None:
    done = run("sdc", "apply", costs[0], "--schema", costs[1], "--from", f"{applied[0]}.manifest.json", "--keys", "age")
    assert "are those of --from" in done.err
    original = run("sdc", "risk", costs[0], "--schema", costs[1], "--original", costs[0])
    assert "go with a released file" in original.err


def test_rows_in_random_order_are_compared_without_weights(run: Run, costs: tuple[Path, Path], tmp_path: Path) -> None:
    """Nobody knows whose weight a row has: then the original is measured without them too."""
    ward, schema = costs
    frame = pd.read_csv(ward, dtype=str).assign(times=[str(1 + i % 5) for i in range(len(pd.read_csv(ward)))])
    frame.to_csv(ward, index=False)
    declared = '[attributes.times]\nrole = "insensitive"\ntype = "numeric"\nrange = [0, 9]\n'
    schema.write_text('weight = "times"\n' + schema.read_text() + declared)
    out, key = tmp_path / "out.csv", tmp_path / "out.key"
    assert run("sdc", "apply", ward, "--schema", schema, *STEPS, "-o", out, "--row-key", key).code == 0
    asked = ("sdc", "risk", out, "--schema", schema, "--original", ward)
    shown = run(*asked)
    assert shown.code == 0, shown.err
    assert "without sampling weights" in shown.out
    found, matched = run(*asked, "--json").json, run(*asked, "--row-key", key, "--json").json
    assert [found["weighted"], found["original"]["weighted"]] == [False, False]
    assert [matched["weighted"], matched["original"]["weighted"]] == [True, True]


def test_originals_against_released_numbers_are_drawn(run: Run, costs: tuple[Path, Path], tmp_path: Path) -> None:
    plot = tmp_path / "scatter.svg"
    done = run("sdc", "apply", costs[0], "--schema", costs[1], *STEPS[:2], "--plot", plot)
    assert done.code == 0, done.err
    assert "do not publish it" in done.out
    drawn = plot.read_text()
    assert all(text in drawn for text in ("original", "released", "cost"))
    again = run("sdc", "apply", costs[0], "--schema", costs[1], *STEPS[:2], "--plot", plot)
    assert again.code == 2, "a file is not replaced unasked"


def test_a_report_shows_correlations_and_the_moves_of_a_panel(run: Run, tmp_path: Path) -> None:
    """J(1) of the report is the metric of the same chain."""
    data, schema, out = tmp_path / "panel.csv", tmp_path / "panel.toml", tmp_path / "out.csv"
    values = [(i * 37) % 101 for i in range(60)]
    pd.DataFrame({"sex": ["f", "m"] * 30, "pay_1": values, "pay_2": [(v * 3) % 97 for v in values]}).to_csv(
        data, index=False
    )
    numbers = "".join(f'[attributes.pay_{t}]\nrole = "sensitive"\ntype = "numeric"\nrange = [0, 200]\n' for t in (1, 2))
    schema.write_text(
        'name = "panel"\none_row_per_person = true\n[attributes.sex]\nrole = "quasi_identifying"\n'
        'type = "categorical"\nvalues = ["f", "m"]\n' + numbers
    )
    step = "longitudinal_reverse_mapping:periods=pay_1,pay_2"
    done = run("sdc", "apply", data, "--schema", schema, "--step", step, "--keep-order", "-o", out, "--json")
    assert done.code == 0, done.err
    page = tmp_path / "page.html"
    arguments = ("report", "--privacy", out, "--original", data, "--schema", schema, "-o", page)
    assert run(*arguments).code == 0
    text = page.read_text()
    assert "Correlations, released | original" in text
    assert f"{done.json['measured']['temporal_change_1']['modified']:.2f}" in text.split("Moves in rank")[1][:2000]
