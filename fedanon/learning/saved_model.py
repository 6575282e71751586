"""A trained model in a folder: its numbers, its card, and its schema where that is known; written, read and applied."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedanon.data.readers import read_frame
from fedanon.data.schema import Schema
from fedanon.data.table import MissingPolicy, Table, check_columns
from fedanon.errors import ConfigError, DataError, SchemaError
from fedanon.fields import build
from fedanon.io.atomic import atomic_write
from fedanon.learning.model_card import FORMAT, card_text
from fedanon.learning.settings import RunSettings
from fedanon.learning.strategies import make_model
from fedanon.learning.validation import check_arrays
from fedanon.models.base import Parameters
from fedanon.models.encoding import Encoding
from fedanon.models.outcome import Outcome
from fedanon.models.target import class_values, in_units, outcome_of
from fedanon.types import FloatArray

CARD, CARD_TEXT, SCHEMA = "card.json", "card.md", "schema.json"
#: of models that are averaged, and of trees: the second is a file of xgboost's own
ARRAYS, TREES = "model.npz", "model.json"
MODE = 0o600
MAX_BYTES = 512 * 2**20


def write_model(
    folder: Path,
    card: Mapping[str, Any],
    parameters: Parameters,
    schema: Schema | None = None,
    *,
    replace: bool = False,
) -> Path:
    """Write a model's folder, closed to others; the card comes last, so a folder without one is not whole.

    Parameters
    ----------
    folder : must not hold anything yet, unless ``replace``.
    card : see :func:`fedanon.learning.model_card.make_card`.
    parameters : of the model.
    schema : of the tables it was trained on, or :func:`needed_schema` of it, if it is at hand.
    replace : whether an earlier model may be overwritten.
    """
    if not replace and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not an empty folder; nothing was written.")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / CARD).unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"The folder {folder} cannot be written: {error.strerror or 'unknown reason'}.") from None
    name, data = _stored(card, parameters)
    atomic_write(folder / name, data, mode=MODE)
    stored = schema.sha256 if schema else None
    full = {**card, "file": name, "file_sha256": hashlib.sha256(data).hexdigest(), "stored_schema_sha256": stored}
    (folder / SCHEMA).unlink(missing_ok=True)
    if schema is not None:
        atomic_write(folder / SCHEMA, json.dumps(schema.to_dict(), indent=1) + "\n", mode=MODE)
    atomic_write(folder / CARD_TEXT, card_text(full), mode=MODE)
    atomic_write(folder / CARD, json.dumps(full, indent=2, sort_keys=True) + "\n", mode=MODE)
    return folder


def needed_schema(schema: Schema, settings: RunSettings) -> Schema:
    """What it takes to apply a model: features and target as declared, of other columns role and type alone."""
    features = [attribute.name for attribute in Encoding.from_schema(schema, features=settings.features).attributes]
    needed = [*features, *([schema.target] if schema.target else [])]
    return schema.without_values().replacing(*(schema[name] for name in needed))


def _stored(card: Mapping[str, Any], parameters: Parameters) -> tuple[str, bytes]:
    if make_model(_settings(card)).aggregation == "trees":
        return TREES, parameters[0].tobytes()
    buffer = io.BytesIO()
    np.savez(buffer, *parameters)
    return ARRAYS, buffer.getvalue()


@dataclass(frozen=True)
class SavedModel:
    """A model read back.

    Parameters
    ----------
    card : what is known of it.
    parameters : its numbers.
    schema : of the tables it was trained on, if the folder has it.
    """

    card: Mapping[str, Any]
    parameters: Parameters
    schema: Schema | None

    @classmethod
    def read(cls, folder: Path) -> SavedModel:
        """Read a folder that :func:`write_model` wrote; what was changed since is refused."""
        try:
            card = json.loads((folder / CARD).read_text(encoding="utf-8"))
            if card["format"] != FORMAT or card["file"] not in (ARRAYS, TREES):
                raise DataError(f"The model {folder.name} was written by another version of fedanon.")
            if (folder / card["file"]).stat().st_size > MAX_BYTES:
                raise DataError(f"The model {folder.name} is larger than {MAX_BYTES // 2**20} MB.")
            data = (folder / card["file"]).read_bytes()
            schema = folder / SCHEMA
            known = Schema.from_dict(json.loads(schema.read_text(encoding="utf-8"))) if schema.exists() else None
        except (OSError, ValueError, KeyError, TypeError):
            raise DataError(f"{folder} is not the folder of a model, or was not written whole.") from None
        if hashlib.sha256(data).hexdigest() != card["file_sha256"]:
            raise DataError(f"The file {card['file']} is not the one of the card: it was changed.")
        return cls(card, _parameters(card, data), known)

    def predict(
        self, path: Path, schema: Schema | None = None, *, missing: MissingPolicy = "error", encoding: str = "utf-8"
    ) -> pd.DataFrame:
        """The probability of the positive class for every record of a file, and the class that is likelier.

        Of several classes, the probability of each; of a number, the number alone.

        Parameters
        ----------
        path : a file as training nodes have them; it needs the columns that are features, and no target.
        schema : needed if the model's folder has none; must be that of the training.
        missing : how missing features are treated.
        encoding : of a text file.
        """
        declared = schema or self.schema
        if declared is None:
            raise ConfigError("This model's folder has no schema: --schema names that of the nodes it was trained at.")
        settings = _settings(self.card)
        features = Encoding.from_schema(declared, features=settings.features)
        table = _feature_table(read_frame(path, encoding=encoding), features, declared, missing)
        coded = declared.replacing(*(a for a in table.schema.attributes if a in declared.quasi_identifiers))
        accepted = {self.card["schema_sha256"], self.card.get("stored_schema_sha256")}
        if accepted.isdisjoint((declared.sha256, coded.sha256)) or features.width != self.card["width"]:
            raise SchemaError("The schema is not the one this model was trained with: its hash is another.")
        model = make_model(settings, outcome_of(declared))
        return _predictions(model.predict_proba(self.parameters, features.encode_table(table)), declared)


def _predictions(found: FloatArray, schema: Schema) -> pd.DataFrame:
    """For people: numbers in units of the column, classes by their names with the probability of each."""
    records, labels = {"record": np.arange(1, len(found) + 1)}, np.array(class_values(schema), dtype=object)
    if not len(labels):
        return pd.DataFrame(records | {"predicted": in_units(found, schema)})
    if len(labels) == 2:
        return pd.DataFrame(records | {"probability": found, "predicted": labels[(found >= 0.5).astype(int)]})
    each = {f"probability_{label}": found[:, number] for number, label in enumerate(labels)}
    return pd.DataFrame(records | each | {"predicted": labels[found.argmax(axis=1)]})


def _feature_table(frame: pd.DataFrame, features: Encoding, declared: Schema, missing: MissingPolicy) -> Table:
    """The columns that are features; others may be there if the schema declares them."""
    names, here = [attribute.name for attribute in features.attributes], [str(name) for name in frame.columns]
    expected = tuple(a for a in declared.attributes if a.name in names or a.name in here)
    check_columns(here, len(frame), Schema(expected))
    schema = Schema(features.attributes, missing_values=declared.missing_values).with_quasi_identifiers(names)
    return Table.from_frame(frame[names], schema, missing=missing)


def _settings(card: Mapping[str, Any]) -> RunSettings:
    return build(RunSettings, card["settings"])


def _outcome(card: Mapping[str, Any]) -> Outcome:
    """What it predicts; cards of older versions are of two classes and do not say so."""
    return Outcome(int(card.get("classes", 2)))


def _parameters(card: Mapping[str, Any], data: bytes) -> Parameters:
    if card["file"] == TREES:
        return [np.frombuffer(data, dtype=np.uint8)]
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            found = [stored[f"arr_{i}"] for i in range(len(stored.files))]
    except (OSError, ValueError, KeyError):
        raise DataError("The arrays of the model cannot be read.") from None
    check_arrays(found, make_model(_settings(card), _outcome(card)).initial(int(card["width"])))
    return found
