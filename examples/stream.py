"""Engineer of a gateway: readings published as they come, and the claim recounted from what was published."""

from pathlib import Path
from tempfile import mkdtemp

import pandas as pd

from fedanon import Schema, Table
from fedanon.datasets.example_files import write_example_files
from fedanon.streams.people import StickyClasses
from fedanon.streams.replay import replay_people

folder = Path(mkdtemp())
write_example_files(folder)
readings = pd.read_json(folder / "readings.jsonl", lines=True)
table = Table.from_frame(readings, Schema.read(folder / "ward.toml"))

for k, delay in ((3, 600.0), (5, 1800.0), (10, 3600.0)):
    release = replay_people(StickyClasses(k=k, delay=delay), table, readings["time"].to_numpy(dtype=float))
    published = 1 - release.suppressed.mean()
    print(f"k={k}, newcomers wait {delay / 60:.0f} minutes: {published:.0%} of the readings are published")
print(release.to_frame().dropna().head())
