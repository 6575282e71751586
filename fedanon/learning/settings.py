"""Settings of a federated run, each stated once.

The command line, experiment files, `server.toml` and Flower's run config are derived from these fields. Beside type,
default, help and bounds a field says what it is good for:

``group``
    what it is about, which is the panel of ``--help`` it stands in.
``simulated``
    whether it means something in a simulation only; in a deployed federation nodes bring their own tables.
``prepares``
    whether a node's release, features or facts depend on it. True unless said otherwise, so that a new setting never
    meets what a node prepared without it.
``optional``
    whether a stored experiment knows it only where it differs from its default.
``option``
    its name on the command line, where it is not that of the field.

This module is imported by every ``fedanon --help``: it imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_type_hints

from fedanon.errors import ConfigError
from fedanon.fields import Settings, build, check_fields, parameter, stored_form

DATA, METHOD, TRAINING, PRIVACY, ATTACK = "Data", "Method", "Training", "Differential privacy", "Malicious nodes"


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """What the server and every node of a run agree on; nested settings are tables of the component's parameters."""

    dataset: str = parameter(
        "adult",
        help="data set by name, where nodes do not bring their own table",
        group=DATA,
        simulated=True,
        prepares=False,
    )
    source: Settings = parameter(
        {},
        help="where an own table lies and how it is read, which `dataset` then only names",
        group=DATA,
        simulated=True,
        prepares=False,
        optional=True,
    )
    partition: str = parameter(
        "iid",
        help="how rows are dealt out to nodes: iid, dirichlet:ALPHA[:COLUMN], quantity:ALPHA, by:COLUMN, or stored",
        group=DATA,
        simulated=True,
        prepares=False,
    )
    nodes: int = parameter(
        10,
        help="number of nodes of a simulation",
        at_least=1,
        aliases=("clients",),
        group=DATA,
        simulated=True,
        prepares=False,
    )
    method: str = parameter(
        "identity",
        help="anonymizer every node applies to its training rows, or all nodes jointly; see `fedanon methods`",
        group=METHOD,
    )
    method_settings: Settings = parameter({}, help="a parameter of the method", group=METHOD, option="--set")
    model: str = parameter("lr", help="model every node trains: {models}", group=TRAINING)
    model_settings: Settings = parameter({}, help="a parameter of the model", group=TRAINING)
    strategy: str = parameter(
        "fedavg",
        help="how the server combines updates: {strategies}",
        group=TRAINING,
        prepares=False,
    )
    strategy_settings: Settings = parameter({}, help="a parameter of the strategy", group=TRAINING, prepares=False)
    dp_settings: Settings = parameter(
        {}, help="differentially private training: mode, epsilon, delta, clip", group=PRIVACY, prepares=False
    )
    rounds: int = parameter(100, help="rounds of training", at_least=1, group=TRAINING, prepares=False)
    nodes_per_round: int = parameter(
        0,
        help="nodes that train in a round; 0 means all",
        at_least=0,
        aliases=("clients_per_round",),
        group=TRAINING,
        prepares=False,
        option="--per-round",
    )
    min_replies: float = parameter(
        0.5,
        help="a round with a smaller share of usable replies fails",
        at_least=0,
        at_most=1,
        group=TRAINING,
        prepares=False,
        optional=True,
    )
    evaluate_every: int = parameter(
        1,
        help="rounds between evaluations; the last round is always evaluated",
        at_least=1,
        group=TRAINING,
        prepares=False,
    )
    test_share: float = parameter(
        0.2,
        help="share of every node's rows kept for testing",
        at_least=0.01,
        at_most=0.9,
        group=DATA,
        optional=True,
    )
    features: Literal["quasi_identifiers", "all"] = parameter(
        "quasi_identifiers", help="columns a model sees", group=DATA
    )
    protocol: Literal["corrected", "as_published"] = parameter(
        "corrected", help="split first and test on raw rows, or what the thesis's code did", group=DATA, simulated=True
    )
    malicious: int = parameter(
        0,
        help="number of malicious nodes of a simulation",
        at_least=0,
        aliases=("hostile",),
        group=ATTACK,
        simulated=True,
        prepares=False,
    )
    malicious_attack: str = parameter(
        "sign_flip",
        help="what they do: {malicious_attacks}",
        aliases=("tampering",),
        group=ATTACK,
        simulated=True,
        prepares=False,
    )
    malicious_settings: Settings = parameter(
        {},
        help="a parameter of the attack",
        aliases=("tampering_settings",),
        group=ATTACK,
        simulated=True,
        prepares=False,
    )
    max_move: float = parameter(
        5.0,
        help="a step this many times the round's median is left out; 0 leaves none out",
        at_least=0,
        group=ATTACK,
        prepares=False,
    )
    exclude_suspects: bool = parameter(
        False, help="leave out nodes whose updates are unlike the others'", group=ATTACK, prepares=False
    )
    seed: int = parameter(0, help="seed of all randomness", at_least=0, group=DATA)

    def __post_init__(self) -> None:
        check_fields(self)
        for name, hint in get_type_hints(RunSettings).items():
            if hint is float:  # TOML and command lines give 1 where 1.0 is meant, which would name another checkpoint
                object.__setattr__(self, name, float(getattr(self, name)))
        if self.dp is not None:
            self.dp.refuse_unfit(self)

    @cached_property
    def dp(self) -> DpSettings | None:
        """The privacy budget of the training, if it has one."""
        return build(DpSettings, self.dp_settings) if self.dp_settings else None

    def identity(self) -> dict[str, Any]:
        """Everything that tells one run from another; a hash of it names the run's checkpoint."""
        known = {name.replace("_", "-"): value for name, value in stored_form(self).items()}
        return known if self.source else {name: value for name, value in known.items() if name != "source"}

    def tagged(self, **tags: Any) -> dict[str, Any]:
        """The values of the fields with all these ``tags``, such as ``simulated=False``."""
        usual = {"simulated": False, "prepares": True, "optional": False}
        chosen = [e for e in fields(self) if all(e.metadata.get(n, usual.get(n)) == t for n, t in tags.items())]
        values = {entry.name: getattr(self, entry.name) for entry in chosen}
        return values if self.source else {name: value for name, value in values.items() if name != "source"}

    def published(self) -> RunSettings:
        """The settings as a result states them: an own table by its name alone."""
        return replace(self, source={}) if self.source else self


# ---- Differentially private training -------------------------------------------------------------

Mode = Literal["central", "local", "record"]

#: what one unit of privacy is; sizes, and how many nodes there are, are public
UNITS: dict[Mode, str] = {
    "central": "one node, present or sending nothing; the server is trusted",
    "local": "all rows of one node, replaced by any others; the server is not trusted",
    "record": "one training record of a node, present or adding nothing; the server is not trusted",
}
COVERS = "the model after every round; not the numbers of rows, the scores of test rows, nor who failed to answer"
#: of budgets by risk: how strong the noise of a node is says how alike its people are
COVERS_BY_RISK = f"{COVERS}; nor the size of a node's own budget, which its rows decide"


@dataclass(frozen=True, kw_only=True)
class DpSettings:
    """The privacy budget of a run and how it is kept."""

    mode: Mode = parameter(
        "record", help="who adds noise: the server, each node on its update, or each node on its gradients"
    )
    epsilon: float = parameter(help="privacy budget of the whole run", at_least=1e-3)
    delta: float = parameter(1e-5, help="chance of a larger loss; below one over the number of units", at_least=1e-15)
    clip: float = parameter(2.0, help="largest norm of an update (central, local) or gradient (record)", at_least=1e-9)
    learning_rate: float = parameter(4.0, help="step size of the mode 'record'", at_least=1e-9)
    randomness: Literal["secure", "seeded"] = parameter(
        "secure", help="where noise comes from; 'seeded' is for experiments and promises nothing"
    )
    by_risk: bool = parameter(
        False, help="in the mode 'local', a node takes epsilon times one minus the mean risk in its own release"
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if self.delta >= 0.5:
            raise ConfigError(f"The 'delta' parameter of DpSettings must be below 0.5. Got {self.delta!r} instead.")

    def refuse_unfit(self, run: RunSettings) -> None:
        """Raise ConfigError where a promise could not be kept with the other settings of a run."""
        from fedanon.models import MODELS

        if MODELS[run.model].aggregation != "mean":
            raise ConfigError(f"Differential privacy needs a model that is averaged; {run.model!r} is not one.")
        if run.protocol != "corrected":
            raise ConfigError("Differential privacy needs the protocol 'corrected': the other trains on test rows too.")
        if self.by_risk and self.mode != "local":
            raise ConfigError(f"A budget by risk is the node's own: it needs the dp mode 'local', not {self.mode!r}.")
        if self.mode == "central" and run.strategy != "fedavg":
            raise ConfigError(
                f"The dp mode 'central' needs the strategy 'fedavg': one node can move {run.strategy!r} too far."
            )
        if self.mode == "central" and run.exclude_suspects:
            raise ConfigError("The dp mode 'central' cannot exclude suspects: one node would decide on others.")
        if self.mode == "record" and not MODELS[run.model].clips_gradients:
            raise ConfigError(
                f"The dp mode 'record' clips the gradient of every record; {run.model!r} has none: use lr."
            )
        if self.mode == "record" and run.method != "identity":
            raise ConfigError(
                f"The dp mode 'record' needs the method 'identity': with {run.method!r} one record changes the "
                "published values of others, whose gradients would not be covered."
            )
