"""A node's policy: what a server may ask of it. The defaults are what `fedanon node init` writes, and are safe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from fedanon.anonymizers import ANONYMIZERS
from fedanon.errors import ConfigError, RefusedError
from fedanon.fields import build, check_fields, listed, parameter
from fedanon.joint import JOINT_METHODS
from fedanon.joint.disclosure import SecureNoisy, read_rules
from fedanon.joint.method import JointMethod
from fedanon.learning.node_rules import NodeRules, ScoreRule
from fedanon.learning.settings import RunSettings
from fedanon.privacy.requirements import parse_requirements
from fedanon.streams.windowed import STREAM, LearnFromWindows

RUNS, SPLIT, SCORES, COUNTS, NOISE = "Runs", "Who is tested", "Scores", "Joint counts", "Differential privacy"
APPS = "Apps of other people (`fedanon node allow`)"
#: bytes of the key from which a node derives its split
KEY_BYTES = 32


@dataclass(frozen=True, kw_only=True)
class NodePolicy:
    """What a node asks of a run before it takes part, and how much it answers."""

    methods: str = parameter(
        "mondrian, gfkmc, wkmca, k_member, tdg, full_domain, federated_mondrian, stream",
        help="methods that a run may use; NAME:K asks for a larger k than min_k",
        group=RUNS,
    )
    min_k: int = parameter(
        5,
        help="refuse a run whose release has a class of fewer people of this node; 1 allows raw rows",
        at_least=1,
        aliases=("least_k",),
        group=RUNS,
    )
    require: str = parameter(
        "", help="what classes must satisfy beyond k, such as l=2:COLUMN; the run has to ask for it too", group=RUNS
    )
    truthful: bool = parameter(
        True,
        help="refuse a release whose cells are not true of everyone in a class: they may be those of one record",
        group=RUNS,
    )
    features: Literal["quasi_identifiers", "all"] = parameter(
        "quasi_identifiers",
        help="columns a model may see; 'all' includes columns that are not anonymized",
        group=RUNS,
    )
    max_releases: int = parameter(
        1, help="different releases of one data file; a run with the same settings uses the same one", group=RUNS
    )
    runs_per_day: int = parameter(50, help="runs that may begin in a day", at_least=1, group=RUNS)
    measures: Literal["release", "all"] = parameter(
        "release",
        help="what is reported: what the release shows anyway, or also how it differs from the table",
        group=RUNS,
    )
    digits: int = parameter(3, help="decimals of everything reported", at_least=0, at_most=20, group=RUNS)
    split: Literal["secret", "run"] = parameter(
        "secret",
        help="who chooses the people that are tested: a key of this node, or (for studies) the seed of the run",
        group=SPLIT,
    )
    min_test: int = parameter(50, help="fewest people who are tested", at_least=1, group=SPLIT)
    min_test_share: float = parameter(0.05, help="smallest share a run may test", at_least=0, at_most=1, group=SPLIT)
    max_test_share: float = parameter(0.5, help="largest share that is tested", at_least=0, at_most=0.9, group=SPLIT)
    scores: ScoreRule = parameter(
        "release",
        help="models are scored on a k-anonymous release of the test people; or noisy counts ('private'), or not",
        group=SCORES,
    )
    evaluations_per_run: int = parameter(200, help="evaluations a run may ask for", at_least=0, group=SCORES)
    evaluations_per_day: int = parameter(
        1000, help="evaluations all runs may ask for in a day", at_least=0, group=SCORES
    )
    score_epsilon: float = parameter(
        2.0, help="scores = 'private': what one evaluation costs a test person", at_least=1e-3, group=SCORES
    )
    max_score_epsilon: float = parameter(
        6.0, help="scores = 'private': what all evaluations of all runs may cost", at_least=0, group=SCORES
    )
    score_noise: Literal["shared", "own"] = parameter(
        "shared",
        help="scores = 'private': noise in shares with the nodes of peer_keys, most of them honest; or all of it here",
        group=SCORES,
    )
    counts: str = parameter(
        "secure_dp",
        help="rules it accepts; 'secure' shows the server exact sums over all nodes, 'plain' every count",
        group=COUNTS,
    )
    counts_per_run: int = parameter(40, help="questions for counts that a run may ask", at_least=0, group=COUNTS)
    count_epsilon: float = parameter(
        1.0, help="what noisy counts of all runs together may cost; pure epsilon", at_least=0, group=COUNTS
    )
    min_peers: int = parameter(2, help="fewest other nodes whose counts are summed with this one's", group=COUNTS)
    federation_k: bool = parameter(
        False, help="a k over all nodes is enough; only the server can know that it is kept", group=COUNTS
    )
    max_epsilon: float = parameter(
        0.0,
        help="privacy budget of all runs together; refuse any with more, or without one; 0 asks for none",
        at_least=0,
        aliases=("most_epsilon",),
        group=NOISE,
    )
    max_delta: float = parameter(
        1e-5,
        help="delta at which that budget is counted",
        at_least=0,
        at_most=0.5,
        aliases=("most_delta",),
        group=NOISE,
    )
    trust_server: bool = parameter(
        False, help="with a budget: also where the server adds the noise and counts", group=NOISE
    )
    app_walls: Literal["required", "any"] = parameter(
        "required",
        help="refuse to run an allowed app where files, network and processes cannot be closed to it; or run it anyway",
        group=APPS,
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.counts.strip():
            raise ConfigError("The 'counts' of a node must name rules, such as 'secure_dp'; empty once meant any.")
        read_rules(self.counts)
        parse_requirements(self.require)
        if self.min_test_share > self.max_test_share:
            raise ConfigError("The 'min_test_share' of a node is larger than its 'max_test_share'.")
        if self.scores == "private" and self.split != "secret":
            raise ConfigError("Private scores need split = 'secret': a server that chose the people would know them.")
        if self.scores == "private" and self.max_epsilon and self.max_score_epsilon > self.max_epsilon:
            raise ConfigError("The 'max_score_epsilon' of a node may not be larger than its 'max_epsilon'.")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> NodePolicy:
        """The policy in a node config of Flower's, whose names have dashes; what it does not state is the default."""
        names = {name: entry.name for entry in fields(cls) for name in (entry.name, *entry.metadata.get("aliases", ()))}
        return build(cls, {name: config[key] for name in names if (key := name.replace("_", "-")) in config})

    def to_config(self) -> dict[str, Any]:
        """For a node config of Flower's."""
        return {entry.name.replace("_", "-"): getattr(self, entry.name) for entry in fields(NodePolicy)}

    @property
    def least_k(self) -> dict[str, int]:
        """The least k of every method that is allowed."""
        found = {}
        for entry in listed(self.methods):
            name, _, k = (part.strip() for part in entry.partition(":"))
            if k and not k.isdigit():
                raise ConfigError(f"The method {name!r} of the policy must be followed by a whole number. Got {k!r}.")
            found[name] = max(self.min_k, int(k or 1))
        return found

    def rules(self, key: Path | None) -> NodeRules:
        """What the node decides about its rows; ``key`` is the file of its split key."""
        return NodeRules(
            secret=_read_key(key) if self.split == "secret" else b"",
            min_test=self.min_test,
            max_test_share=self.max_test_share,
            # where a budget is kept, scores are paid for or not given
            scores="none" if self.max_epsilon and self.scores != "private" else self.scores,
            test_k=max(self.min_k, 2),
            require=self.require,
        )

    def check_methods(self) -> None:
        """Raise ConfigError for methods nobody knows; looking for all there are takes its time."""
        known = {*ANONYMIZERS.names(), *JOINT_METHODS.names(), STREAM}
        if unknown := sorted(set(self.least_k) - known):
            raise ConfigError(f"Unknown methods in the policy: {', '.join(unknown)}; `fedanon methods` lists all.")

    # ---- a run ----------------------------------------------------------------------------------

    def check_run(self, settings: RunSettings) -> None:
        """Raise RefusedError unless the settings of a run, by themselves, are allowed."""
        if settings.protocol != "corrected":
            raise RefusedError("protocol", f"The protocol {settings.protocol!r} is for simulations only.")
        if settings.features != self.features and self.features != "all":
            raise RefusedError("features", f"A run asks for the features {settings.features!r}, which are not allowed.")
        if not self.min_test_share <= settings.test_share <= self.max_test_share:
            raise RefusedError(
                "split",
                f"A run asks for a test share of {settings.test_share:g}, outside of {self.min_test_share:g} to "
                f"{self.max_test_share:g}.",
            )
        self._check_method(settings)

    def _check_method(self, settings: RunSettings) -> None:
        least = self.least_k.get(settings.method)
        if least is None:
            raise RefusedError("method", f"A run asks for the method {settings.method!r}, which is not in `methods`.")
        method: Any = make_component(settings)
        joint = isinstance(method, JointMethod)
        k = method.k_local if joint and not self.federation_k else getattr(method, "k", None)
        if k is not None and k < least:
            raise RefusedError(
                "k", f"A run asks for {'k_local' if joint and not self.federation_k else 'k'}={k}, below {least}."
            )
        if any(model.subject == "population" for model in parse_requirements(getattr(method, "require", ""))):
            raise RefusedError("method", "A run names a file of this node in a requirement.")

    # ---- counts ---------------------------------------------------------------------------------

    def check_counts(self, method: JointMethod) -> None:
        """Raise RefusedError unless counts by this method are allowed: before anything is counted."""
        if method.counts not in (rules := read_rules(self.counts)):
            raise RefusedError(
                "counts", f"This node counts jointly only by {' or '.join(rules)}, not by {method.counts}."
            )
        if method.noisy and (method.randomness != "secure" or method.epsilon > self.count_epsilon):
            raise RefusedError(
                "counts", f"This node counts only with secure noise and an epsilon of at most {self.count_epsilon:g}."
            )
        if method.counts == "threshold" and method.threshold < self.min_k:
            raise RefusedError("counts", f"A run asks for counts from {method.threshold} on, below {self.min_k}.")

    def check_peers(self, method: JointMethod, n_nodes: int) -> None:
        """Raise RefusedError unless enough nodes hide this one's counts, and enough of them add noise."""
        if n_nodes - 1 < self.min_peers:
            raise RefusedError(
                "peers", f"Counts are to be summed with {n_nodes - 1} other nodes, not {self.min_peers}."
            )
        disclosure = method.disclosure
        if isinstance(disclosure, SecureNoisy) and disclosure.enough(n_nodes) > n_nodes // 2 + 1:
            raise RefusedError(
                "counts", f"Noise is to be enough only with {disclosure.honest} honest nodes; there are {n_nodes}."
            )


def make_component(settings: RunSettings) -> Any:
    """The method of a run, with its settings."""
    if settings.method == STREAM:
        return build(LearnFromWindows, settings.method_settings)
    registry: Any = JOINT_METHODS if settings.method in JOINT_METHODS else ANONYMIZERS
    return build(registry[settings.method], settings.method_settings)


def _read_key(path: Path | None) -> bytes:
    try:
        key = path.read_bytes() if path else b""
    except OSError:
        key = b""
    if len(key) < KEY_BYTES:
        raise ConfigError("The node has no split key; `fedanon node run` makes one, or set split = 'run'.")
    return key
