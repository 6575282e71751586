"""What an attacker gains over guessing."""

from __future__ import annotations

from fedanon.attacks import ATTACKS
from fedanon.attacks.base import AttackResult
from fedanon.attacks.suite import AttackReport
from fedanon.report.charts import REFERENCE, Panel, Series
from fedanon.report.document import (
    Block,
    Bullets,
    Details,
    Figure,
    Note,
    Paragraph,
    Section,
    TableBlock,
    TableCell,
    TableColumn,
)
from fedanon.report.privacy.exposed import attack_title, exposed_blocks
from fedanon.report.privacy.language import Language

PERCENT = (0.0, 0.25, 0.5, 0.75, 1.0)


def attacks_section(found: AttackReport | None, say: Language) -> Section:
    """Show every attack that was run, compared with the best guess of someone without the release."""
    title = say("attacks.title")
    if found is None:
        return Section(title, (Note(say("attacks.none_title"), (say("attacks.none"),), "note"),))
    blocks: list[Block] = [Paragraph(say("attacks.about"))]
    if found.results:
        blocks += [_figure(found.results, say), _table(found.results, say), _meanings(found.results, say)]
    blocks += exposed_blocks(found.record_risks, say)
    if found.not_tried:
        items = tuple(f"{attack_title(name, say)}: {reason}" for name, reason in found.not_tried.items())
        blocks.append(Details(say("attacks.not_tried", n=len(items)), (Bullets(items),)))
    return Section(title, tuple(blocks))


def largest_gain(found: AttackReport | None) -> AttackResult | None:
    """Return the attack whose entire interval lies furthest above guessing."""
    gains = [one for one in found.results if one.low > one.baseline] if found else []
    return max(gains, key=lambda one: one.low - one.baseline, default=None)


def _figure(results: list[AttackResult], say: Language) -> Figure:
    ticks = tuple((float(i), attack_title(one.attack, say)) for i, one in enumerate(results))
    places = tuple(place for place, _ in ticks)
    rates = Series(
        label=say("attacks.rate"),
        style=0,
        x=tuple(one.rate for one in results),
        y=places,
        low=tuple(one.low for one in results),
        high=tuple(one.high for one in results),
        form="points",
    )
    guess = Series(
        label=say("attacks.guess"), style=REFERENCE, x=tuple(one.baseline for one in results), y=places, form="points"
    )
    description = "; ".join(
        say(
            "attacks.words",
            attack=attack_title(one.attack, say),
            rate=say.share(one.rate),
            guess=say.share(one.baseline),
        )
        for one in results
    )
    panel = Panel(
        title="",
        x_label=say("attacks.axis"),
        y_label="",
        series=(rates, guess),
        x_ticks=tuple((place, say.share(place)) for place in PERCENT),
        y_ticks=ticks,
        x_zero=True,
        intervals_across=True,
        description=description,
    )
    return Figure("attacks", say("attacks.figure"), say("attacks.caption"), (panel,), _drawn(results, say))


def _drawn(results: list[AttackResult], say: Language) -> TableBlock:
    """Return the numbers of the figure."""
    columns = (
        TableColumn(say("attacks.attack")),
        *(TableColumn(say(f"attacks.{name}"), numeric=True) for name in ("rate", "guess")),
    )
    rows = [
        (
            TableCell(attack_title(one.attack, say)),
            *(TableCell(say.share(value), value) for value in (one.rate, one.baseline)),
        )
        for one in results
    ]
    return TableBlock(say("attacks.figure"), columns, tuple(rows))


def _table(results: list[AttackResult], say: Language) -> TableBlock:
    names = ("rate", "interval", "guess", "lift", "n")
    columns = (
        TableColumn(say("attacks.attack")),
        *(TableColumn(say(f"attacks.{name}"), numeric=True) for name in names),
    )
    return TableBlock(say("attacks.table"), columns, tuple(_row(one, say) for one in results))


def _row(one: AttackResult, say: Language) -> tuple[TableCell, ...]:
    return (
        TableCell(attack_title(one.attack, say)),
        TableCell(say.share(one.rate), one.rate),
        TableCell(say.interval(one.low, one.high), one.high),
        TableCell(say.share(one.baseline), one.baseline),
        TableCell(say.number(one.lift), one.lift),
        TableCell(say.number(one.n), one.n),
    )


def _meanings(results: list[AttackResult], say: Language) -> Block:
    """Explain what success would mean."""
    rows = tuple((TableCell(attack_title(one.attack, say)), TableCell(_meaning(one.attack, say))) for one in results)
    table = TableBlock(
        say("attacks.meanings"), (TableColumn(say("attacks.attack")), TableColumn(say("attacks.meaning"))), rows
    )
    return Details(say("attacks.meanings"), (table,))


def _meaning(name: str, say: Language) -> str:
    key = f"attack_meaning.{name}"
    return say(key) if say.knows(key) else ATTACKS[name].meaning
