"""`fedanon predict` and `fedanon export`: a trained model applied to a file, and written for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console
from fedanon.errors import ConfigError


def predict(
    model: Annotated[Path, typer.Argument(help="Folder of a model, as a server or `fedanon simulate` writes it.")],
    file: Annotated[Path, typer.Argument(metavar="INPUT", help="CSV file with a header line, or .parquet.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file to write; it must not exist.")],
    schema: Annotated[Path | None, typer.Option(help="Schema of the file, if the model's folder has none.")] = None,
    missing: options.Missing = None,
    encoding: options.Encoding = "utf-8",
    audit: AuditFile = None,
) -> None:
    """Predict: the probability of the positive class, of every class, or a number, for every record in its order.

    The file needs the columns the model was trained on, not the target. A schema
    with another hash than that of the training is refused. The output says
    something about every person in the file: treat it like the file itself.
    """
    from fedanon.data.schema import Schema
    from fedanon.io.atomic import atomic_write
    from fedanon.io.manifest import file_sha256
    from fedanon.learning.saved_model import MODE, SavedModel

    if output.exists():
        raise ConfigError(f"{output} exists; nothing was written.")
    policy: Any = missing or "error"
    with audited(audit, "predict") as entry:
        saved = SavedModel.read(model)
        entry |= {"model_sha256": saved.card["file_sha256"], "input_sha256": file_sha256(file)}
        declared = None if schema is None else Schema.read(schema)
        found = saved.predict(file, declared, missing=policy, encoding=encoding)
        atomic_write(output, found.to_csv(index=False), mode=MODE)
        entry |= {"records": len(found), "output_sha256": file_sha256(output)}
    more = ""
    if "probability" in found:
        more = f", {int((found['probability'] >= 0.5).sum())} of them with a probability of at least 0.5"
    console().print(f"Wrote {output}: {len(found)} records{more}.")


def export(
    model: Annotated[Path, typer.Argument(help="Folder of a model, as a server or `fedanon simulate` writes it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="ONNX file to write; it must not exist.")],
) -> None:
    """Write a model as ONNX, for programs that do not use fedanon.

    Logistic regression (lr) and the neural network (mlp); trees are a file of
    xgboost's own already. The graph takes features as fedanon encodes them: its
    metadata name them in their order, where the model has its schema.
    """
    from fedanon.io.atomic import atomic_write
    from fedanon.learning.onnx_model import to_onnx
    from fedanon.learning.saved_model import MODE, SavedModel

    if output.exists():
        raise ConfigError(f"{output} exists; nothing was written.")
    saved = SavedModel.read(model)
    atomic_write(output, to_onnx(saved), mode=MODE)
    console().print(f"Wrote {output}: {saved.card['width']} features in, the probability of the positive class out.")
