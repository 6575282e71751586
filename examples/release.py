"""Steward: a verified release of a table, with its manifest, and what an attacker still gains."""

from pathlib import Path
from tempfile import mkdtemp

from fedanon import AttackContext, Schema, evaluate, read_table, write_release
from fedanon.anonymizers import Mondrian
from fedanon.attacks import run_attacks, select_attacks
from fedanon.datasets.example_files import write_example_files

folder = Path(mkdtemp())
write_example_files(folder)

schema = Schema.read(folder / "schema.toml")
table = read_table(folder / "patients.csv", schema)
release = Mondrian(k=10, require="l=2:diagnosis").anonymize(table, rng=0)  # verified, or an error

print(release.to_frame().head())
print(evaluate(table, release, ["k_reached", "ncp", "linkage_expected_share"]))

found = run_attacks(AttackContext(table, release, None), select_attacks("record_linkage,homogeneity"))
for attack in found.results:
    print(f"{attack.title}: {attack.rate:.3f}, by guessing {attack.baseline:.3f}")

print("written:", write_release(release, table, folder / "released.csv"))
