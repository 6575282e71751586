"""docs/reference/schema.md: every example is a schema, and every key the reader knows is documented."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from fedanon.data.attributes import KEYS, Role
from fedanon.data.rules.dates import LEVELS as DATE_LEVELS
from fedanon.data.rules.icd import LEVELS as ICD_LEVELS
from fedanon.data.schema import Schema
from fedanon.data.schema_toml import schema_toml

GUIDE = (Path(__file__).parents[2] / "docs" / "reference" / "schema.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", GUIDE, flags=re.DOTALL)
#: what a reader sees as a name of a key, outside of examples
NAMED = set(re.findall(r"`([a-z_0-9]+)(?: = [^`]+)?`", re.sub(r"```.*?```", "", GUIDE, flags=re.DOTALL)))


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_are_schemas(example):
    schema = Schema.from_dict(tomllib.loads(example))
    assert Schema.from_dict(tomllib.loads(schema_toml(schema))) == schema


def test_every_key_is_documented_and_shown():
    shown = [tomllib.loads(example) for example in EXAMPLES]
    entries = [entry for document in shown for entry in document["attributes"].values()]
    for kind, keys in KEYS.items():
        assert set(keys) <= NAMED, f"undocumented keys of {kind}"
        assert any(entry.get("type", "text") == kind for entry in entries), f"no example of {kind}"
    used = {key for entry in entries for key in entry}
    assert {key for keys in KEYS.values() for key in keys} - used <= {"hierarchy"}, "a file of its own"
    of_table = {field.name for field in fields(Schema)} - {"key"}
    assert of_table <= NAMED
    assert of_table - {key for document in shown for key in document} == set()


def test_every_role_and_level_is_documented():
    assert {*Role, *DATE_LEVELS, *ICD_LEVELS, *KEYS} <= NAMED
