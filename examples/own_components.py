"""Author: a metric, an attack and a method of your own, registered by name and held to what each must keep."""

from dataclasses import dataclass

from fedanon import ANONYMIZERS, ATTACKS, AttackContext, KAnonymizer, evaluate, metric
from fedanon.attacks import Attack, Finding, run_attacks, select_attacks
from fedanon.testing import check_anonymizer, check_attack, example_table


@metric("largest_class", title="Largest class", better="lower")
def largest_class(_, release):
    return float(release.classes.sizes.max(initial=0))


@ATTACKS.register("alone")
@dataclass(frozen=True, kw_only=True)
class Alone(Attack):
    title, meaning, target = "Alone", "A person stands alone in the release.", "release"

    def run(self, context, rng):
        found = context.release.classes
        return Finding.from_tries(found.sizes[found.labels[~found.suppressed]] == 1, baseline=0.0)


@ANONYMIZERS.register("coin_toss")
@dataclass(frozen=True, kw_only=True)
class CoinToss(KAnonymizer):
    name = "coin_toss"

    def partition(self, table, rng):
        return rng.integers(0, 2, len(table), dtype="int32")[table.distinct.order.argsort()]


check_attack(Alone())
check_anonymizer(CoinToss(k=3))
release = CoinToss(k=5).anonymize(table := example_table(60), rng=0)
print(evaluate(table, release, ["largest_class", "ncp"]))
print(run_attacks(AttackContext(table, release, None), select_attacks("alone")).results[0].rate)
