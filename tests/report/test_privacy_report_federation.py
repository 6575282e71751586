"""The risk report of a federation: each hospital's k, and in words where k over all of them is not enough."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fedanon.errors import DataError
from fedanon.io.audit import VARIABLE, read_chain
from fedanon.report.html import render_html
from fedanon.report.privacy.federation_report import federation_report
from fedanon.report.privacy.federation_result import read_result
from fedanon.report.privacy.language import TABLES, language
from tests.report.conftest import Page

JOINT = {"k": 10, "k_local": 2, "nodes": [0, 1], "classes": 7, "smallest_class_at_least": 10, "confidence": 1.0}


def facts(k: float | None) -> dict[str, Any]:
    measures = {"linkage_expected_share": 0.125, "ncp_published": 0.2, "suppressed_share": 0.0, "truthfulness": 1.0}
    told = measures | ({} if k is None else {"k_reached": k})
    return {"schema_sha256": "ab" * 32, "version": "0", "width": 3, "n_train": 100, "n_test": 20, "measures": told}


def written(folder: Path, ks: list[float | None], *, k: int | None = 5, **more: Any) -> Path:
    settings = {"method": "mondrian", "model": "lr", "rounds": 3, "seed": 4, "clients": 2}
    settings["method-settings"] = json.dumps({} if k is None else {"k": str(k)})
    nodes = {str(i): facts(one) for i, one in enumerate(ks)}
    document = {
        "version": "0",
        "settings": settings,
        "rounds": [{"round": 3}],
        "facts": nodes,
        "rejected": [],
        "silent": [],
    }
    path = folder / "result.json"
    path.write_text(json.dumps(document | more), encoding="utf-8")
    return path


def shown(path: Path, code: str = "en") -> str:
    return Page(render_html(federation_report(read_result(path), language(code)))).text


def test_the_nodes_are_counted_by_older_and_by_newer_files(tmp_path: Path) -> None:
    assert read_result(written(tmp_path, [5, 8, 9])).n_nodes == 3
    settings = {"method": "mondrian", "method-settings": "{}"}
    assert read_result(written(tmp_path, [], settings=settings | {"clients": 4})).n_nodes == 4
    assert read_result(written(tmp_path, [], settings=settings | {"nodes": 6})).n_nodes == 6
    assert "a federation of 6 nodes" in shown(tmp_path / "result.json")


def test_every_hospital_is_judged(tmp_path: Path) -> None:
    good = read_result(written(tmp_path, [5, 8]))
    assert (good.scope, good.k, good.failed, good.smallest) == ("node", 5, False, 5)
    text = shown(written(tmp_path, [5, 8]))
    assert text.count("✓ ≥ 5") == 2
    assert "12.5 %" in text
    bad = read_result(written(tmp_path, [5, 4]))
    assert bad.failed
    text = shown(written(tmp_path, [5, 4]))
    assert "✗ < 5" in text
    assert "A promise does not hold" in text


@pytest.mark.parametrize("code", sorted(TABLES))
def test_k_over_the_federation_is_said_not_to_be_enough(tmp_path: Path, code: str) -> None:
    path = written(tmp_path, [2, 3], joint=JOINT)
    result = read_result(path)
    assert (result.scope, result.k, result.k_local, result.failed) == ("federation", 10, 2, False)
    say = language(code)
    text = shown(path, code)
    assert text.count(say("limits.federation")) == 2, "first of all, and among what is not protected"
    assert say("promise.k_federation", k=10, unit=say("unit.records")) in text
    assert not re.findall(r"{\w+}", text), "all is filled in"
    short = read_result(written(tmp_path, [1, 3], joint=JOINT))
    assert short.failed
    # results of earlier versions have another key
    assert read_result(written(tmp_path, [2, 3], together=JOINT | {"smallest_class_at_least": 9})).failed


def test_what_hospitals_keep_to_themselves_is_open(tmp_path: Path) -> None:
    budget = {"epsilon": 1.0, "epsilon_spent": 0.75, "delta": 1e-5, "promised": False}
    path = written(tmp_path, [None, None], dp=budget)
    assert not read_result(path).failed
    text = shown(path)
    assert "? left open" in text
    assert "epsilon 0.75 of 1 was spent" in text
    assert "it promises nothing" in text
    means = written(tmp_path, [])
    assert "does not report the smallest class" in shown(means)


def test_the_worst_of_a_federation_is_said_first(tmp_path: Path) -> None:
    def level(ks: list[float | None], **more: Any) -> str:
        return read_result(written(tmp_path, ks, **more)).conclusion().level

    assert level([5, 8], counted="people") == "kept"
    assert level([5, 8]) == "kept_but", "people are not known to have been counted"
    assert level([5, None], counted="people") == "not_checked", "one node keeps its k to itself"
    assert level([4, None], counted="people") == "broken"
    assert level([10, 10], counted="people", joint=JOINT) == "kept_but", "k is that of the federation"
    assert level([1, 1], k=None) == "nothing_promised"


@pytest.mark.parametrize("unit", ["people", "records"])
def test_people_are_spoken_of_only_where_they_were_counted(tmp_path: Path, unit: str) -> None:
    text = shown(written(tmp_path, [5, 8], counted=unit))
    assert f"shared by at least 5 {unit}" in text
    assert f"Smallest class of any node: 5 {unit}" in text
    assert f"among at least k {unit}" in text
    other = {"people": "records", "records": "people"}[unit]
    assert f"5 {other}" not in text


def test_a_method_without_a_promise(tmp_path: Path) -> None:
    text = shown(written(tmp_path, [1, 1], k=None, security="none", rejected=[{"round": 1}], silent=[]))
    assert "Nothing is promised" in text
    assert "used neither TLS nor keys" in text
    assert "Updates rejected: 1; responses missing: 0." in text


def test_a_folder_with_one_result(tmp_path: Path) -> None:
    path = written(tmp_path, [5, 5])
    assert read_result(tmp_path).path == path
    (tmp_path / "results").mkdir()
    moved = path.rename(tmp_path / "results" / "one.json")
    assert read_result(tmp_path).path == moved
    (tmp_path / "results" / "two.json").write_text("{}")
    with pytest.raises(DataError, match="holds 2 results"):
        read_result(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"settings": 3}', '{"settings": {"method": "x"}, "facts": {"0": 1}}']
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not the result of a federation"):
        read_result(path)
    with pytest.raises(DataError, match="does not exist"):
        read_result(tmp_path / "none.json")


def test_a_simulation_tells_its_hospitals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedanon.federated.simulation import simulate
    from fedanon.learning.settings import RunSettings

    settings = RunSettings(dataset="randhie", method="mondrian", method_settings={"k": 5}, nodes=2, rounds=1)
    log, path = tmp_path / "log", tmp_path / "simulated.json"
    monkeypatch.setenv(VARIABLE, str(log))
    path.write_text(json.dumps(simulate(settings).to_dict()), encoding="utf-8")
    result = read_result(path)
    assert [node.number for node in result.nodes] == ["0", "1"]
    assert result.smallest is not None
    assert result.smallest >= 5
    assert not result.failed
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events] == ["release", "release", "update", "update"]
    assert {event["facts"]["facts"]["measures"]["k_reached"] for event in events[:2]} == {
        n.k_reached for n in result.nodes
    }
    assert read_chain(log)[0].broken is None
