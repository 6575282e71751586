"""The one door through which a node's answers leave: it asks the node's policy, its ledger, and writes the audit log.

A node of a simulation has an open :class:`fedanon.federated.door.Door`; one with a table or a stream of its own (`data`
or `stream` in its node config) has a :class:`GuardedDoor`, whatever else its config states. The server is told what
kind of thing was refused; why stands in the log of the node and in its audit log.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flwr.app import Context, Message
from numpy.typing import NDArray

from fedanon.errors import (
    ConfigError,
    DataError,
    FedanonError,
    InfeasibleError,
    PrivacyViolationError,
    RefusedError,
    SchemaError,
    UpdateRejectedError,
)
from fedanon.federated import joint_state, wire
from fedanon.federated.door import Door, content_bytes
from fedanon.federated.policy import NodePolicy, make_component
from fedanon.federated.shared_scores import check_peers, count_privately, offer_key
from fedanon.io.audit import AuditLog, audit
from fedanon.io.manifest import file_sha256
from fedanon.joint.masks import Keys
from fedanon.joint.method import JointMethod
from fedanon.learning.egress_ledger import EgressLedger, EgressNote, RunNote
from fedanon.learning.node import RELEASE_METRICS, Node, NodeFacts
from fedanon.learning.node_rules import NodeRules
from fedanon.learning.node_store import identify_data
from fedanon.learning.settings import RunSettings
from fedanon.models.base import Parameters
from fedanon.privacy.models.k_anonymity import KAnonymity
from fedanon.privacy.requirements import parse_requirements
from fedanon.release.gate import digest_release
from fedanon.streams.learning_node import StreamNode
from fedanon.streams.windowed import STREAM
from fedanon.streams.windows import read_windows

log = logging.getLogger("fedanon")

#: what the server is told of errors that are no refusals of the policy
KINDS: tuple[tuple[type[FedanonError], str], ...] = (
    (PrivacyViolationError, "privacy"),
    (InfeasibleError, "infeasible"),
    (UpdateRejectedError, "request"),
    (ConfigError, "settings"),
    (SchemaError, "data"),
    (DataError, "data"),
)
ROUNDING = 1e-9


def open_door(context: Context) -> Door:
    """The door of a node: guarded unless it plays a part of a simulation."""
    if not {"data", "stream"} & set(context.node_config):
        return Door(context)
    try:
        return GuardedDoor(context)
    except FedanonError as error:  # without a door there is no log of answers, and no answer
        log.error("this node cannot answer anything: %s", error)
        raise _refusal("policy") from None


class GuardedDoor(Door):
    """The door of a node with a table of its own."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.policy = NodePolicy.from_config(self.config)
        folder = str(self.config.get("egress", ""))
        if not folder:
            raise ConfigError("The node config names no folder for the ledger (`egress`); `fedanon node run` does.")
        self.ledger = EgressLedger(Path(folder) / LEDGER_FILE)
        self.log = AuditLog(Path(folder) / LOG_FILE)
        self.ledger.begin(self.log.path)
        self._release = self._data = ""

    @property
    def rules(self) -> NodeRules:
        """What the node decides about its rows."""
        key = str(self.config.get("split-key", ""))
        return self.policy.rules(Path(key) if key else None)

    @property
    def _run(self) -> str:
        return str(self.context.run_id)

    # ---- before anything is computed ------------------------------------------------------------

    def admit(self, settings: RunSettings, plan: Sequence[NDArray[Any]] = ()) -> None:
        """Ask the policy; note the run and its release, before there is one."""
        self.policy.check_run(settings)
        super().admit(settings)
        data = self._identify_data()
        self._release = self._release_key(settings, data, plan)
        with self.ledger.changing() as note:
            self._note_run(note, settings)
            self._note_release_key(note.releases.setdefault(data, {}), self._release)
        self._data = data

    def _identify_data(self) -> str:
        """Of a table what it is counted by; of a stream its first window, which all later manifests follow."""
        if STREAM in self.config:
            return file_sha256(next(read_windows(Path(str(self.config[STREAM])))).path)
        return identify_data(self.config)

    def _note_release_key(self, made: dict[str, str], key: str) -> None:
        if key not in made and len(made) >= self.policy.max_releases:
            raise RefusedError(
                "releases",
                f"A run asks for another release of this data file; max_releases = {self.policy.max_releases} "
                "have been made.",
            )
        made.setdefault(key, "")

    def _note_run(self, note: EgressNote, settings: RunSettings | None = None) -> RunNote:
        """The note of this run; one that came before must have come with the same settings: it has paid by them."""
        day = today()
        if self._run not in note.runs:
            if note.runs_on(day) >= self.policy.runs_per_day:
                raise RefusedError("runs", f"More than runs_per_day = {self.policy.runs_per_day} runs begin today.")
            note.runs[self._run] = RunNote(day)
        run = note.runs[self._run]
        if settings is not None:
            digest = _digest(asdict(settings))
            if run.settings not in ("", digest):
                raise RefusedError("run", "A run comes again with other settings than it began with.")
            run.settings = digest
        return run

    def _release_key(self, settings: RunSettings, data: str, plan: Sequence[NDArray[Any]]) -> str:
        """Equal for equal releases: all that a release depends on, and nothing that it does not.

        The windows of a stream are one release, whichever of them a run learns from: their claim is about all.
        """
        if STREAM in self.config:
            return hashlib.sha256(f"{STREAM} {data}".encode()).hexdigest()[:16]
        depends = {
            "data": data,
            "schema": file_sha256(Path(str(self.config["schema"]))),
            "missing": self.config.get("missing"),
            "method": settings.method,
            "method_settings": asdict(make_component(settings)),
            "test_share": settings.test_share,
            "split": self.rules.split,
            "seed": settings.seed if self.policy.split == "run" else None,
            "plan": joint_state.hash_plan(list(plan)) if plan else None,
        }
        return _digest(depends)

    def admit_counts(self, settings: RunSettings, method: JointMethod) -> None:
        """Ask the policy; note the run."""
        self.policy.check_run(settings)
        self.policy.check_counts(method)
        super().admit_counts(settings, method)
        with self.ledger.changing() as note:
            self._note_run(note, settings)

    def check_made(self, node: Node) -> None:
        """The release must satisfy what the policy requires beyond k, and be the one that was made before, if any.

        A method that is not the same every time, or another version of one, makes another release.
        """
        if isinstance(node, StreamNode):
            self._check_stream(node)
            return
        for model in parse_requirements(self.policy.require):
            model.check(node.release, node.training_table)
        digest = digest_release(node.release).hex()[:32]
        with self.ledger.changing() as note:
            made = note.releases[self._data]
            if made[self._release] not in ("", digest):
                self._release = f"{self._release}-{digest[:8]}"
                self._note_release_key(made, self._release)
            made[self._release] = digest
        self._note_release(node, release=self._release)

    def _check_stream(self, node: StreamNode) -> None:
        """What the policy requires beyond k must be part of the claim, which was verified on all windows together."""
        kept = {str(model) for model in node.stream.claim.models}
        for model in parse_requirements(self.policy.require):
            is_k = isinstance(model, KAnonymity) and model.k <= node.stream.claim.k
            if not is_k and str(model) not in kept:
                raise RefusedError("requirements", f"The windows of this node do not claim {model}.")
        self._note_release(node, release=self._release, windows=node.n_windows, head=node.stream.head)

    def check_node(self, node: Node) -> None:
        """The release must reach the least k of its method."""
        least = self.policy.least_k[node.settings.method]
        method = make_component(node.settings)
        if isinstance(method, JointMethod) and self.policy.federation_k:
            least = method.k_local
        if least > 1 and not node.facts.measures["k_reached"] >= least:
            raise RefusedError("k", f"The release of this node does not reach the k of {least} it asks for.")
        truthful = 1.0 if isinstance(node, StreamNode) else node.facts.measures["truthfulness"]  # a gateway generalizes
        if self.policy.truthful and not truthful >= 1 - ROUNDING:
            raise RefusedError("method", "The release publishes values that are not true of all people of a class.")

    # ---- answers --------------------------------------------------------------------------------

    def facts(self, node: Node) -> NodeFacts:
        """Sizes, and rounded metrics of the release."""
        told = super().facts(node)
        names = RELEASE_METRICS if self.policy.measures == "release" else tuple(told.measures)
        return replace(told, measures={n: self._rounded(told.measures[n]) for n in names if n in told.measures})

    def score_key(self, node: Node) -> tuple[bytes, ...]:
        """Where noise may be shared with nodes that are known."""
        return offer_key(self.context, self.policy, node)

    def scores(
        self, node: Node, parameters: Parameters, number: int, keys: wire.SignedKeys | None = None
    ) -> dict[str, Any]:
        """Scores on what the policy says, counted or paid for before they are worked out."""
        scores = node.rules.scores
        if scores == "none":
            return {}
        peers = check_peers(self.context, self.policy, node, *keys) if keys and scores == "private" else {}
        with self.ledger.changing() as note:
            self._note_evaluation(note, number)
        if scores == "private":
            return count_privately(self.context, self.policy, node, parameters, number, peers)
        return {name: self._rounded(value) for name, value in node.evaluate(parameters).items()}

    def _note_evaluation(self, note: EgressNote, number: int) -> None:
        policy, run, day = self.policy, self._note_run(note), today()
        if run.evaluations >= policy.evaluations_per_run:
            raise RefusedError("evaluations", f"A run asks for more than {policy.evaluations_per_run} evaluations.")
        if note.evaluations.get(day, 0) >= policy.evaluations_per_day:
            raise RefusedError(
                "evaluations", f"More than {policy.evaluations_per_day} evaluations are asked for today."
            )
        if policy.scores == "private":
            if number <= run.last_scored:
                raise RefusedError("evaluations", "A model of this round, or a later one, has been scored already.")
            if note.score_epsilon + policy.score_epsilon > policy.max_score_epsilon * (1 + ROUNDING):
                raise RefusedError("budget", f"The budget max_score_epsilon = {policy.max_score_epsilon:g} is spent.")
            note.score_epsilon += policy.score_epsilon
        run.evaluations += 1
        run.last_scored = max(run.last_scored, number)
        note.evaluations[day] = note.evaluations.get(day, 0) + 1

    def begin_count(self, method: JointMethod, step: int) -> None:
        """Count the question; a new protocol is counted like a release, and its noise is paid for."""
        policy, data = self.policy, self._identify_data()
        with self.ledger.changing() as note:
            run, protocols = self._note_run(note), note.protocols.setdefault(data, [])
            if self._run not in protocols or not run.counts:
                if len({*protocols, self._run}) > policy.max_releases:
                    raise RefusedError(
                        "releases", f"More than max_releases = {policy.max_releases} runs count jointly."
                    )
                if method.noisy and note.count_epsilon + method.epsilon > policy.count_epsilon * (1 + ROUNDING):
                    raise RefusedError("budget", f"The budget count_epsilon = {policy.count_epsilon:g} is spent.")
                note.protocols[data] = list(dict.fromkeys([*protocols, self._run]))
                note.count_epsilon += method.epsilon if method.noisy else 0.0
            if run.counts >= policy.counts_per_run or step <= run.last_count:
                raise RefusedError("counts", "A run asks for too many counts, or for one twice.")
            run.counts, run.last_count = run.counts + 1, step
        super().begin_count(method, step)

    def check_peers(self, method: JointMethod, keys: Keys) -> None:
        """There must be enough of them."""
        self.policy.check_peers(method, len(keys))

    def keep_peers(self, method: JointMethod, keys: Keys) -> None:
        """The same ones throughout: a sum without one of them would show its counts."""
        with self.ledger.changing() as note:
            run = self._note_run(note)
            if run.peers not in ([], sorted(keys)):
                raise RefusedError("peers", "A run is to be summed with other nodes than it began with.")
            run.peers = sorted(keys)
        joint_state.keep_peers(self.context, keys, all_stay=True)

    def begin_app_reply(self, most: int) -> None:
        """Counted before it is asked."""
        with self.ledger.changing() as note:
            run = self._note_run(note)
            if run.app_replies >= most:
                raise RefusedError("app", f"A run asks an app for more than replies_per_run = {most} answers.")
            run.app_replies += 1

    def end_app_reply(self, size: int, most: int) -> None:
        """Counted before it leaves."""
        with self.ledger.changing() as note:
            run = self._note_run(note)
            if run.app_bytes + size > most:
                raise RefusedError("app", f"The answers of an app in this run have more than {most} bytes.")
            run.app_bytes += size

    def egress(self) -> dict[str, int]:
        """By the node's own log: what its people would count in it."""
        text = self.log.path.read_text(encoding="ascii") if self.log.path.exists() else ""
        lines = (json.loads(line) for line in text.splitlines())
        own = [line for line in lines if line["facts"].get("run") == self._run]
        answers = [line["facts"] for line in own if line["event"] == "answer"]
        kinds = Counter(answer["kind"] for answer in answers)
        return {
            "releases": len({answer["release"] for answer in answers if "release" in answer}),
            "facts": kinds["facts"],
            "updates": kinds["update"],
            "evaluations": kinds["scores"],
            "counts": kinds["counts"],
            "refusals": sum(line["event"] == "refusal" for line in own),
            "bytes": sum(answer["bytes"] for answer in answers),
        }

    def _rounded(self, value: float) -> float:
        return round(float(value), self.policy.digits)

    # ---- the log --------------------------------------------------------------------------------

    def note(self, event: str, **facts: Any) -> None:
        """Add a line to the node's own audit log, and to that of the environment, if there is one."""
        self.log.append(event, {"run": self._run, **facts})
        audit(event, run=self._run, **facts)

    def send(self, kind: str, reply: Message, **facts: Any) -> Message:
        """Write down what leaves, then let it pass."""
        told = {"release": self._release} if self._release else {}
        self.note("answer", kind=kind, bytes=content_bytes(reply), **told, **facts)
        return reply

    def refuse(self, kind: str, error: FedanonError) -> FedanonError:
        """The reason stays here; the server learns its kind."""
        refusal = error.kind if isinstance(error, RefusedError) else _kind(error)
        log.warning("refused to answer %s (%s): %s", kind, refusal, error)
        try:
            self.note("refusal", kind=kind, refusal=refusal, reason=str(error))
        except FedanonError as unwritten:  # names a file of this machine
            log.error("%s", unwritten)
            refusal = "log"
        return _refusal(refusal)


#: names of the files in a node's folder
LEDGER_FILE, LOG_FILE = "egress.json", "egress.jsonl"


def today() -> str:
    """The day, by which limits are counted."""
    return datetime.now(UTC).date().isoformat()


def _digest(depends: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(depends, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _refusal(kind: str) -> RefusedError:
    """All that the server is told."""
    return RefusedError(kind, f"This node refuses to answer: {kind}.")


def _kind(error: FedanonError) -> str:
    return next((kind for family, kind in KINDS if isinstance(error, family)), "failure")
