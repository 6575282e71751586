"""Researcher: what anonymization costs a model that three hospitals train together."""

from pathlib import Path
from tempfile import mkdtemp

from fedanon import RunSettings, simulate
from fedanon.datasets.example_files import write_example_files

folder = Path(mkdtemp())
write_example_files(folder)
hospitals = [str(folder / f"{name}.csv") for name in ("north", "south", "east")]
source = {"data": hospitals, "schema": str(folder / "schema.toml")}

for method, settings in (("identity", {}), ("mondrian", {"k": 5}), ("mondrian", {"k": 20}), ("gfkmc", {"k": 5})):
    run = simulate(
        RunSettings(
            dataset="hospitals",
            source=source,
            partition="stored",
            nodes=3,
            method=method,
            method_settings=settings,
            model="lr",
            rounds=10,
        )
    )
    scores = run.to_dict()
    print(
        f"{method} {settings}: AUC {scores['auc_pooled']:.3f}, loss {scores['ncp']:.3f}, linked {scores['linkage']:.3f}"
    )
