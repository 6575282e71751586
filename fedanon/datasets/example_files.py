"""Example files: made-up patients of three hospitals and readings of a ward, for tutorials and first tries.

Nobody in them exists. The values are drawn so that something can be learned (older patients with more visits return
more often) and something can go wrong (postal codes and ages single people out).
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from fedanon.errors import ConfigError
from fedanon.io.atomic import atomic_write
from fedanon.types import Rng

HOSPITALS = ("north", "south", "east")
DIAGNOSES = ("I10", "E11.9", "J45.0", "M54.5", "F32.1", "N18.3")
PATIENTS, NEW, READINGS_PEOPLE, HOURS = 900, 60, 40, 12

SCHEMA = """\
name = "patients"
target = "readmitted"
person_id = "record_number"

[attributes.record_number]
role = "identifying"
type = "text"

[attributes.name]
role = "identifying"
type = "text"

[attributes.sex]
role = "quasi_identifying"
type = "categorical"
values = ["F", "M"]

[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
integer = true
top = 90

[attributes.postal_code]
role = "quasi_identifying"
type = "code"
form = "99999"
prefixes = [1, 2, 3]

[attributes.visits]
role = "quasi_identifying"
type = "numeric"
range = [0, 30]
integer = true

[attributes.hospital]
role = "insensitive"
type = "categorical"
values = ["east", "north", "south"]

[attributes.diagnosis]
role = "sensitive"
type = "icd10"

[attributes.readmitted]
role = "sensitive"
type = "categorical"
values = ["no", "yes"]
"""

WARD = """\
name = "ward"
person_id = "patient"

[attributes.patient]
role = "identifying"
type = "text"

[attributes.age]
role = "quasi_identifying"
type = "numeric"
range = [0, 110]
integer = true

[attributes.heart_rate]
role = "quasi_identifying"
type = "numeric"
range = [30, 200]
integer = true

[attributes.time]
role = "insensitive"
type = "numeric"
range = [0, 100000]
integer = true
"""


def write_example_files(folder: Path) -> list[Path]:
    """Write the files into a folder, the same ones every time; ConfigError if one of them is there."""
    rng = np.random.default_rng(2024)
    patients = _patients(PATIENTS, rng, first=10_000)
    contents = {
        "patients.csv": _csv(patients),
        **{f"{name}.csv": _csv(patients[patients["hospital"] == name]) for name in HOSPITALS},
        "new_patients.csv": _csv(_patients(NEW, rng, first=20_000)),
        "schema.toml": SCHEMA,
        "readings.jsonl": _readings(rng),
        "ward.toml": WARD,
    }
    there = [name for name in contents if (folder / name).exists()]
    if there:
        raise ConfigError(f"{', '.join(there)} exist in {folder}; name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        atomic_write(folder / name, text)
    return [folder / name for name in contents]


def _csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, lineterminator="\n")


def _patients(count: int, rng: Rng, first: int) -> pd.DataFrame:
    given = ["Ana", "Bruno", "Carla", "Diego", "Elena", "Felix", "Greta", "Hugo", "Iris", "Jonas", "Karin"]
    family = ["Silva", "Souza", "Berg", "Lopes", "Weber", "Costa", "Haas", "Moreira", "Klein", "Ramos"]
    age = np.clip(rng.normal(58, 19, count), 18, 99).round().astype(int)
    visits = np.minimum(rng.poisson(1 + age / 30), 30)
    chance = 1 / (1 + np.exp(-(-4.2 + 0.035 * age + 0.55 * visits)))
    return pd.DataFrame(
        {
            "record_number": [f"R{first + i}" for i in rng.permutation(count)],
            "name": [f"{a} {b}" for a, b in zip(rng.choice(given, count), rng.choice(family, count), strict=True)],
            "sex": rng.choice(["F", "M"], count),
            "age": age,
            "postal_code": [
                f"{code:05d}" for code in rng.choice([10, 11, 20, 21, 22], count) * 1000 + rng.integers(0, 400, count)
            ],
            "visits": visits,
            "hospital": np.array(HOSPITALS)[np.arange(count) % len(HOSPITALS)],
            "diagnosis": rng.choice(DIAGNOSES, count, p=[0.3, 0.25, 0.15, 0.15, 0.1, 0.05]),
            "readmitted": np.where(rng.random(count) < chance, "yes", "no"),
        }
    )


def _readings(rng: Rng) -> str:
    """A reading of everyone on a ward every half hour or so, in the order of time."""
    ages, rates = rng.integers(20, 95, READINGS_PEOPLE), rng.normal(78, 10, READINGS_PEOPLE)
    times = np.sort(rng.integers(0, HOURS * 3600, READINGS_PEOPLE * HOURS * 2))
    lines = [
        {
            "patient": f"P{who:03d}",
            "age": int(ages[who]),
            "heart_rate": int(np.clip(rng.normal(rates[who], 6), 40, 180)),
            "time": int(time),
        }
        for who, time in zip(rng.integers(0, READINGS_PEOPLE, len(times)), times, strict=True)
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)
