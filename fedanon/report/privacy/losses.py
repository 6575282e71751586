"""What the release lost: suppressed rows, and detail column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedanon.data.cells import is_suppressed
from fedanon.data.schema import Categorical, Numeric
from fedanon.data.table import Table
from fedanon.metrics.information_loss import ncp_by_column, published_losses, truthfulness_by_column
from fedanon.release.release import Release
from fedanon.release.view import PublishedView
from fedanon.report.charts import Panel, Series
from fedanon.report.document import (
    Block,
    Facts,
    Figure,
    Note,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    TableColumn,
    Tone,
)
from fedanon.report.privacy.chain import chain_blocks, is_truthful_step
from fedanon.report.privacy.evidence import ReleaseEvidence
from fedanon.report.privacy.language import Language
from fedanon.report.privacy.masked_numbers import masked_number_blocks
from fedanon.report.privacy.pooled_copies import pooled_blocks, pooled_facts
from fedanon.sdc.metrics.numeric_pair import deviations, numeric_pair


def losses_section(evidence: ReleaseEvidence, losses: Sequence[ColumnLoss], say: Language) -> Section:
    """Show suppressed rows, mean loss, and the loss of every column as figure and table."""
    blocks: list[Block] = [Facts(_facts(evidence, losses, say))]
    if not is_truthful(evidence, losses):
        blocks.append(Note(say("losses.untrue_title"), (say("losses.untrue"),), "warning"))
    if perturbed := evidence.perturbed:
        blocks.append(Paragraph(say("losses.masked", columns=say.named(perturbed))))
    if losses:
        blocks += [*_spread([one for one in losses if one.loss is not None], say), _table(losses, say)]
    if evidence.steps:
        blocks += chain_blocks(evidence.steps, say)
        table, release = evidence.with_masked
        if table is not None and release is not None:
            blocks += masked_number_blocks(table, release, say)
        blocks += pooled_blocks(pooled_facts(evidence), say)
    return Section(say("losses.title"), tuple(blocks))


def mean_loss(losses: Sequence[ColumnLoss]) -> float | None:
    """Average over the generalized columns: from the originals if available, else from the published cells."""
    known = [one.loss if one.measured is None else one.measured for one in losses]
    values = [value for value in known if value is not None]
    return sum(values) / len(values) if values else None


def is_truthful(evidence: ReleaseEvidence, losses: Sequence[ColumnLoss]) -> bool:
    """Return whether published cells hold the original values, as measured or as promised by the method."""
    measured = [one.true for one in losses if one.true is not None]
    if evidence.masked:
        return False
    if measured:
        return min(measured) == 1
    return all(is_truthful_step(step) for step in evidence.steps) and (
        evidence.anonymizer is None or evidence.anonymizer.truthful
    )


def _facts(evidence: ReleaseEvidence, losses: Sequence[ColumnLoss], say: Language) -> tuple[tuple[str, str], ...]:
    rows = len(evidence.released)
    return (
        (
            say("losses.suppressed"),
            say("losses.of_rows", n=evidence.suppressed, share=say.share(evidence.suppressed / rows), rows=rows),
        ),
        (say("losses.mean_generalized" if evidence.perturbed else "losses.mean"), say.share(mean_loss(losses))),
    )


def _spread(losses: Sequence[ColumnLoss], say: Language) -> list[Block]:
    if not losses:
        return []
    titles = [say("losses.exact"), *(say("losses.up_to", share=say.share(end / 10)) for end in range(1, 11))]
    columns = (TableColumn(say("columns.column")), *(TableColumn(title, numeric=True) for title in titles))
    rows = tuple(
        (TableCell(f"`{one.column}`"), *(TableCell(say.share(value), value) for value in one.by_bin)) for one in losses
    )
    table = TableBlock(say("losses.spread_table"), columns, rows)
    panels = tuple(_bars(one, say) for one in losses)
    return [Figure("loss-spread", say("losses.spread"), say("losses.spread_caption"), panels, table)]


def _bars(one: ColumnLoss, say: Language) -> Panel:
    places = tuple(float(i) for i in range(len(one.by_bin)))
    bars = Series(label=say("losses.rows"), style=0, x=places, y=one.by_bin, form="bars")
    return Panel(
        title=say("losses.panel", column=one.column, loss=say.share(one.loss)),
        x_label="",
        y_label="",
        series=(bars,),
        x_ticks=((0.0, say("losses.exact")), (5.0, say.share(0.5)), (10.0, say.share(1.0))),
        y_zero=True,
        small=True,
        description=say(
            "losses.panel_words", column=one.column, exact=say.share(one.exact), hidden=say.share(one.hidden)
        ),
    )


def _table(losses: Sequence[ColumnLoss], say: Language) -> TableBlock:
    names = ("loss", "exact_share", "hidden", "measured", "true", "moved")
    columns = (
        TableColumn(say("columns.column")),
        *(TableColumn(say(f"losses.{name}"), numeric=True) for name in names),
    )
    return TableBlock(say("losses.table"), columns, tuple(_row(one, say) for one in losses))


def _row(one: ColumnLoss, say: Language) -> tuple[TableCell, ...]:
    tone: Tone = "bad" if one.true is not None and one.true < 1 else ""
    return (
        TableCell(f"`{one.column}`"),
        TableCell(say.share(one.loss), one.loss),
        TableCell(say.share(one.exact), one.exact),
        TableCell(say.share(one.hidden), one.hidden),
        TableCell(say.share(one.measured), one.measured),
        TableCell(say.share(one.true), one.true, tone),
        TableCell(say.number(one.moved), one.moved),
    )


# ---- loss of every quasi-identifier --------------------------------------------------------------

#: upper ends of the bins of loss; the first bin holds exact values
BINS = np.concatenate([[0.0], np.linspace(0.1, 1.0, 10)])


@dataclass(frozen=True)
class ColumnLoss:
    """The loss of one quasi-identifier, or of one column that a chain masked.

    Parameters
    ----------
    column : its name.
    loss : NCP of the published cells, from 0 (exact) to 1 (nothing left).
    exact : share of the rows with an exact value.
    hidden : share of the rows about which the column says nothing.
    by_bin : share of the rows in every bin of loss.
    measured : NCP from the originals; None without them.
    true : share of the cells that hold the original value; None without the originals.
    moved : mean distance of a perturbed number from its original, in standard deviations of the originals.

    Of a column whose values were perturbed, the width of the cells says nothing: loss, exact, hidden and measured are
    None.
    """

    column: str
    loss: float | None = None
    exact: float | None = None
    hidden: float | None = None
    by_bin: tuple[float, ...] = ()
    measured: float | None = None
    true: float | None = None
    moved: float | None = None


def column_losses(evidence: ReleaseEvidence) -> list[ColumnLoss]:
    """Return the loss of every quasi-identifier, in the order of the schema."""
    table, release = evidence.with_masked
    measured = ncp_by_column(table, release) if table is not None and release is not None else {}
    true = truthfulness_by_column(table, release) if table is not None and release is not None else {}
    # a masked column has cells only beside the original
    view: PublishedView = evidence.released if release is None or not evidence.masked else release
    moved = {} if table is None or release is None else _moved(table, release)
    perturbed = evidence.perturbed
    return [
        ColumnLoss(attribute.name, true=true.get(attribute.name), moved=moved.get(attribute.name))
        if attribute.name in perturbed
        else _column(view, attribute, measured.get(attribute.name), true.get(attribute.name))
        for attribute in view.schema.quasi_identifiers
    ]


def _moved(table: Table, release: Release) -> dict[str, float]:
    """Return the mean distance of what is published from the original, in standard deviations, by numeric column."""
    pair = numeric_pair(table, release, complete=False)
    names = [column.name for column in table.columns if column.values is not None]
    if pair is None:
        return {}
    distances = zip(names, np.abs(pair.original - pair.published).T, deviations(pair.original), strict=True)
    return {
        name: float(np.nanmean(each) / spread)
        for name, each, spread in distances
        if spread > 0 and not np.isnan(each).all()
    }


def _column(
    view: PublishedView, attribute: Numeric | Categorical, measured: float | None, true: float | None
) -> ColumnLoss:
    loss = published_losses(view, attribute.name)
    # a suppressed row, whose label is -1, says nothing either
    hidden = np.append(is_suppressed(view.cells[attribute.name], attribute), True)[view.groups.labels]
    bins = np.bincount(np.searchsorted(BINS, np.round(loss, 9)), minlength=len(BINS)) / len(loss)
    return ColumnLoss(
        column=attribute.name,
        loss=float(loss.mean()),
        exact=float((loss == 0).mean()),
        hidden=float(hidden.mean()),
        by_bin=tuple(bins.tolist()),
        measured=measured,
        true=true,
    )
