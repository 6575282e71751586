"""The result of a federation, read back: what `fedanon simulate --json` and `fedanon server run` write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedanon.data.schema import Unit
from fedanon.errors import DataError
from fedanon.io.manifest import file_sha256
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.release.conclusion import Conclusion, ReleaseFinding, count_promises, grade
from fedanon.release.verdicts import Verdict

Scope = Literal["node", "federation", "none"]


@dataclass(frozen=True)
class NodeResult:
    """One node: its training rows and the metrics of its release."""

    number: str
    rows: int
    metrics: Mapping[str, float]

    @property
    def k_reached(self) -> float | None:
        """People (or records) in its smallest class; None if the node kept it to itself, as under a privacy budget."""
        found = self.metrics.get("k_reached")
        return None if found is None else float(found)


@dataclass(frozen=True)
class FederationResult:
    """A run.

    Parameters
    ----------
    path : of the file.
    document : its content.
    nodes : the participants; empty if the file holds only means.
    """

    path: Path
    document: Mapping[str, Any]
    nodes: tuple[NodeResult, ...]

    @property
    def sha256(self) -> str:
        """Hash of the file."""
        return file_sha256(self.path)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the run."""
        return dict(self.document["settings"])

    @property
    def unresponsive(self) -> list[dict[str, Any]]:
        """Requests that nodes did not answer; older files call them silent."""
        return list(self.document.get("unresponsive", self.document.get("silent", [])))

    @property
    def method(self) -> str:
        """Name of the anonymizer."""
        return str(self.settings["method"])

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method."""
        return dict(json.loads(self.settings.get("method-settings", "{}")))

    @property
    def joint(self) -> dict[str, Any]:
        """What the nodes agreed on; empty if each anonymized alone."""
        return dict(self.document.get("joint") or self.document.get("together") or {})

    @property
    def scope(self) -> Scope:
        """The scope over which k is counted."""
        if self.joint:
            return "federation"
        return "node" if self.k is not None else "none"

    @property
    def k(self) -> int | None:
        """The k that was requested."""
        asked = self.joint.get("k", self.parameters.get("k"))
        return None if asked is None else int(asked)

    @property
    def k_local(self) -> int | None:
        """The k that every node keeps by itself."""
        return int(self.joint.get("k_local", 1)) if self.joint else self.k

    @property
    def n_nodes(self) -> int:
        """Number of nodes that took part, as far as the file says."""
        return (
            len(self.nodes)
            or len(self.joint.get("nodes") or self.joint.get("clients", ()))
            or int(self.settings.get("nodes", self.settings.get("clients", 0)))
        )

    @property
    def counted(self) -> int | None:
        """Lower bound of the smallest class over the federation; None if it was not counted."""
        found = self.joint.get("smallest_class_at_least")
        return None if found is None else int(found)

    def holds_at(self, node: NodeResult) -> bool | None:
        """Return whether a node keeps the k it promises by itself; None if it promises or reports none."""
        if self.k_local is None or node.k_reached is None:
            return None
        return node.k_reached >= self.k_local

    @property
    def smallest(self) -> float | None:
        """People (or records) in the smallest class of any node that reported it."""
        return min((node.k_reached for node in self.nodes if node.k_reached is not None), default=None)

    @property
    def unit(self) -> Unit:
        """What the nodes counted: people only where the result says so."""
        return "people" if self.document.get("counted") == "people" else "records"

    @property
    def promises(self) -> list[KAnonymity]:
        """The k over the federation, if that was agreed on, and the k of every node."""
        if self.k is None:
            return []
        if self.scope == "node":
            return [KAnonymity(k=self.k)]
        local = [KAnonymity(k=self.k_local)] if self.k_local and self.k_local > 1 else []
        return [KAnonymity(k=self.k, scope="federation"), *local]

    def reached(self, model: KAnonymity) -> float | None:
        """The k that was reached of one that was promised; None if the result does not say."""
        return self.counted if model.of_federation else self.smallest

    def verdict(self, model: KAnonymity) -> Verdict:
        """Whether a promise is kept by what the nodes report; open while one that bears it does not."""
        reached = self.reached(model)
        holds = None if reached is None else reached >= model.k
        if holds and not model.of_federation and any(node.k_reached is None for node in self.nodes):
            holds = None
        return Verdict(model, holds, 0, int(self.joint.get("classes", 0)))

    def conclusion(self) -> Conclusion:
        """What is to be said first of the run."""
        verdicts = [self.verdict(model) for model in self.promises]
        findings = [ReleaseFinding(kind="promise_broken", model=one.model) for one in verdicts if one.holds is False]
        findings += [
            ReleaseFinding(kind="promise_not_checked", model=one.model, reason="nodes")
            for one in verdicts
            if one.holds is None
        ]
        if self.scope == "federation":
            findings.append(ReleaseFinding(kind="federation_scope"))
        if self.unit == "records":
            findings.append(ReleaseFinding(kind="records_counted", reason="result"))
        measured = {"counted": self.unit, "smallest_class": self.smallest, "promises": count_promises(verdicts)}
        level = grade(findings, promised=bool(verdicts))
        return Conclusion(level, self.unit, self.unit, tuple(findings), measured)

    @property
    def budget(self) -> dict[str, Any]:
        """How much of the privacy budget of the training was spent; empty without one."""
        return dict(self.document.get("dp") or {})

    @property
    def failed(self) -> bool:
        """Whether any k is violated."""
        return self.conclusion().level == "broken"


def read_result(path: Path) -> FederationResult:
    """Read a result, or the only one in a folder."""
    if path.is_dir():
        path = _only(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        facts = document.get("facts") or {}
        nodes = tuple(NodeResult(str(n), int(one["n_train"]), dict(one["measures"])) for n, one in facts.items())
        result = FederationResult(path, document, nodes)
        _ = result.method, result.k, result.k_local, result.counted, document["rounds"]
    except OSError:
        raise DataError(f"The result {path.name} does not exist or cannot be read.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(
            f"The file {path.name} is not the result of a federation, as `fedanon simulate --json` prints it."
        ) from None
    return result


def _only(folder: Path) -> Path:
    """Return the only result in a folder, or in the folder `results` of a server."""
    places = [folder / "results", folder]
    found = next((files for place in places if (files := sorted(place.glob("*.json")))), [])
    found = [file for file in found if file.name != "manifest.json"]
    if len(found) != 1:
        raise DataError(
            f"The folder {folder.name} holds {len(found)} results of a federation; name one. For results of "
            "experiments, use `fedanon report` without --privacy."
        )
    return found[0]
