"""What masking did to the numbers of a release together: correlations, and the moves of a panel between its periods.

Only moments are shown. A scatter of originals against published values would show the originals; `sdc apply --plot`
draws it for the steward.
"""

from __future__ import annotations

from collections.abc import Sequence

from fedanon.data.table import Table
from fedanon.release.release import Release
from fedanon.report.document import Block, Paragraph, TableBlock, TableCell, TableColumn
from fedanon.report.privacy.language import Language
from fedanon.sdc.metrics.numeric_pair import Pair, correlation, numeric_pair
from fedanon.sdc.metrics.panel import period_pairs, temporal_change

#: most columns of which correlations are shown
MOST_SHOWN = 12
#: the powers of the mean change in rank
ALPHAS = (0.0, 1.0, 2.0)


def masked_number_blocks(table: Table, release: Release, say: Language) -> list[Block]:
    """Show the correlations of the original and of the release, and J of every two successive periods."""
    names = [column.name for column in table.columns if column.values is not None]
    pair = numeric_pair(table, release)
    if pair is None:
        return []
    return [*_correlations(names, pair, say), *_panels(names, pair, say)]


def _correlations(names: Sequence[str], pair: Pair, say: Language) -> list[Block]:
    if not 1 < len(names) <= MOST_SHOWN:
        return []
    before, after = correlation(pair.original), correlation(pair.published)
    columns = (TableColumn(say("columns.column")), *(TableColumn(f"`{name}`", numeric=True) for name in names[1:]))
    rows = tuple(
        (
            TableCell(f"`{name}`"),
            *(
                TableCell(f"{after[i, j]:.3f} | {before[i, j]:.3f}" if j > i else "", after[i, j] if j > i else None)
                for j in range(1, len(names))
            ),
        )
        for i, name in enumerate(names[:-1])
    )
    return [TableBlock(say("losses.correlations"), columns, rows)]


def _panels(names: Sequence[str], pair: Pair, say: Language) -> list[Block]:
    places = period_pairs(list(names))
    if not places:
        return []
    columns = (
        TableColumn(say("losses.periods")),
        *(TableColumn(f"J({alpha:g})", numeric=True) for alpha in ALPHAS),
    )
    moves = [
        [temporal_change(pair.original[:, both], pair.published[:, both], alpha) for alpha in ALPHAS]
        for both in map(list, places)
    ]
    titles = [f"`{names[a]}`, `{names[b]}`" for a, b in places]
    means = [sum(column) / len(moves) for column in zip(*moves, strict=True)]
    rows = tuple(
        (TableCell(title), *(TableCell(f"{value:.2f}", value) for value in values))
        for title, values in zip([*titles, say("losses.periods_mean")], [*moves, means], strict=True)
    )
    return [TableBlock(say("losses.panel_table"), columns, rows), Paragraph(say("losses.panel_text"))]
