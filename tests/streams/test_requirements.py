"""l and t on top of k, through a whole gateway: recounted from its publications by code that shares nothing with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml
from fedanon.errors import PrivacyViolationError
from fedanon.privacy.models.l_diversity import DistinctLDiversity
from fedanon.privacy.models.t_closeness import TCloseness
from fedanon.streams.config import GatewayConfig
from fedanon.streams.gateway import Gateway, Incoming
from fedanon.streams.ledger import Ledger, Shown
from fedanon.streams.window_check import check_windows
from tests.streams.recount import largest_distance
from tests.streams.wards import QUASI, SCHEMA, readings

METHODS = {"people": "k = 4\ndelay = 60\nactive = 60\nepoch = 300", "records": "k = 4\ndelay = 40"}


class Listener:
    """Hears every publication in its order."""

    def __init__(self) -> None:
        self.heard: list[list[dict[str, Any]]] = []

    def publish(self, number: int, rows: list[dict[str, Any]]) -> None:
        assert number == len(self.heard)
        self.heard.append([dict(row) for row in rows])

    def flush(self) -> bool:
        return True


def gateway_of(folder: Path, claim: str, require: str, listener: Listener) -> Gateway:
    attributes = {
        **SCHEMA["attributes"],
        "ill": {"role": "sensitive", "type": "categorical", "values": ["a", "b", "c"]},
    }
    schema = Schema.from_dict({**SCHEMA, "attributes": attributes})
    (folder / "ward.toml").write_text(schema_toml(schema), encoding="utf-8")
    required = f'require = "{require}"' if require else ""
    (folder / "gateway.toml").write_text(
        f'schema = "ward.toml"\nclaim = "{claim}"\ntime = "time"\n[method]\n{METHODS[claim]}\n{required}\n'
        '[sink]\nseconds = 50\nformat = "csv"\n',
        encoding="utf-8",
    )
    return Gateway(GatewayConfig.read(folder / "gateway.toml"), clock="message", outlet=listener)


def published(folder: Path, claim: str, require: str) -> tuple[int, float, Gateway]:
    """Fewest values and largest distance in the publications of a gateway; the number of a reading is its pressure."""
    listener = Listener()
    gateway = gateway_of(folder, claim, require, listener)
    frame = readings(1, 40, 300, gap=25.0, absent=0.1)
    frame["ill"] = np.random.default_rng(1).choice(["a", "b", "c"], len(frame), p=[0.7, 0.2, 0.1])
    frame["pressure"] = range(len(frame))
    rows = json.loads(frame.to_json(orient="records"))
    assert len(rows) <= 301
    gateway.take([Incoming(row) for row in rows], 0.0)
    gateway.finish()
    gateway.close()
    heard = [[{**row, "_person": rows[row["pressure"]]["patient"]} for row in rows_] for rows_ in listener.heard]
    key = [*(["epoch", "class"] if claim == "people" else []), *QUASI]
    return *largest_distance(heard, key, "ill"), gateway


@pytest.mark.parametrize("claim", ["people", "records"])
def test_l_and_t_hold_in_all_that_a_gateway_publishes(claim: str, tmp_path: Path) -> None:
    for name in ("plain", "l", "t"):
        (tmp_path / name).mkdir()
    fewest, largest, _ = published(tmp_path / "plain", claim, "")
    assert fewest < 2, "nothing would be shown by what k gives anyway"
    assert largest > 0.35
    fewest, _, gateway = published(tmp_path / "l", claim, "l=2:ill")
    assert fewest >= 2
    assert gateway.counts.published > 50
    found = check_windows(tmp_path / "l" / "windows", QUASI)
    found.require()
    assert found.claim["all_of"][1]["l"] == 2
    _, largest, gateway = published(tmp_path / "t", claim, "t=0.35:ill")
    assert largest <= 0.35 + 1e-9
    assert gateway.counts.published > 20
    assert any(
        "holds at each publication" in text for text in check_windows(tmp_path / "t" / "windows", QUASI).left_open
    )


def test_the_ledger_refuses_a_class_without_l_values_or_far_from_the_whole() -> None:
    same = [Shown({"age": "[1, 2]", "ill": "a"}, person) for person in "xyz"]
    with pytest.raises(PrivacyViolationError, match="1 classes"):
        Ledger("records", 3, ["age"], models=[DistinctLDiversity(l=2, column="ill")]).require(same)
    ledger = Ledger("records", 3, ["age"], models=[TCloseness(t=0.3, column="ill")])
    ledger.require([Shown({"age": "[1, 2]", "ill": value}, person) for person, value in zip("xyz", "aab", strict=True)])
    restored = Ledger("records", 3, ["age"], models=[TCloseness(t=0.3, column="ill")])
    restored.restore(json.loads(json.dumps(ledger.to_state())))
    for each in (ledger, restored):
        with pytest.raises(PrivacyViolationError):
            each.require([Shown({"age": "[3, 4]", "ill": "b"}, person) for person in "uvw"])
