"""The figures of the pages: panels of the report, drawn by the helper process, without any inline style."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from fedanon.app.shell import State
from fedanon.report.charts import BEYOND, REFERENCE, WITHIN, Panel, Series, describe
from fedanon.report.privacy.language import Language

Panels = Mapping[str, Panel]
_STYLE = re.compile(r' style="([^"]*)"')


def draw(state: State, panels: Panels) -> dict[str, Any]:
    """Every panel as SVG with its description and legend; the helper process has the drawing library."""
    drawn = state.desk.ask("draw", panels={name: asdict(panel) for name, panel in panels.items()})
    return {
        name: {
            "svg": Markup(without_styles(drawn[name]["svg"])),  # made by the drawing library, which escapes labels
            "words": describe(panel),
            "large": panel.large,
            "legend": [
                (one.label, Markup(without_styles(svg)))
                for one, svg in zip(panel.series, drawn[name]["legend"], strict=True)
            ]
            if len(panel.series) > 1
            else [],
        }
        for name, panel in panels.items()
    }


def without_styles(svg: str) -> str:
    """The same with attributes in place of styles, which the policy of our pages forbids."""

    def attributes(found: re.Match[str]) -> str:
        pairs = (part.split(":", 1) for part in found[1].split(";") if ":" in part)
        return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)

    return _STYLE.sub(attributes, svg)


def risk_histogram(risk: Mapping[str, Any], say: Language) -> Panels:
    """Records by their individual risk, and what each column contributes to uniqueness."""
    edges, records = risk["histogram"]["edges"], risk["histogram"]["records"]
    places = tuple(float(i) for i in range(len(records)))
    ticks = tuple((float(i) - 0.5, say.share(edges[i])) for i in range(0, len(edges), 5))
    bars = Series(label=say("app.risk.records"), style=0, x=places, y=tuple(map(float, records)), form="bars")
    found = {
        "histogram": Panel(
            title="",
            x_label=say("app.risk.axis"),
            y_label=say("app.risk.records"),
            series=(bars,),
            x_ticks=ticks,
            y_zero=True,
            large=True,
            description=say("app.risk.described", n=risk["n"], high=risk["above_threshold"]["records"]),
        )
    }
    entries = risk["key_contributions"]
    if entries:
        found["columns"] = _ranked(
            [(entry["key"], entry["contribution"]) for entry in entries], say("app.risk.contribution"), say
        )
    return found


def _ranked(entries: list[tuple[str, float]], label: str, say: Language) -> Panel:
    """Names on lines with a dot each, the first on top."""
    lines = tuple(float(i) for i in range(len(entries)))
    dots = Series(
        label=label,
        style=0,
        x=tuple(value for _, value in entries),
        y=lines,
        low=tuple(0.0 for _ in entries),
        high=tuple(value for _, value in entries),
        form="points",
    )
    return Panel(
        title="",
        x_label=label,
        y_label="",
        series=(dots,),
        y_ticks=tuple((line, name) for line, (name, _) in zip(lines, entries, strict=True)),
        x_zero=True,
        intervals_across=True,
        large=True,
        description="; ".join(f"{name}: {say.number(value)}" for name, value in entries),
    )


def trade_off(compared: Mapping[str, Any], say: Language) -> Panels:
    """Loss against risk, a line per method; labels are k."""
    results = compared["results"]
    series = []
    for index, method in enumerate(dict.fromkeys(one["method"] for one in results)):
        points = [one for one in results if one["method"] == method]
        series.append(
            Series(
                label=method,
                style=index,
                x=tuple(100 * one["ncp"] for one in points),
                y=tuple(100 * one["linkage_expected_share"] for one in points),
                texts=tuple(str(one["k"] or "") for one in points),
            )
        )
    if not series:
        return {}
    panel = Panel(
        title="",
        x_label=say("app.protect.loss_axis"),
        y_label=say("app.protect.risk_axis"),
        series=tuple(series),
        y_log=True,
        large=True,
    )
    return {"tradeoff": panel}


def release_figures(facts: Mapping[str, Any], say: Language) -> Panels:
    """Sizes of the classes, and the loss of every column."""
    sizes = facts["class_sizes"]
    width, counts = sizes["width"][0], sizes["classes"]
    labels = [say.number(low) if width == 1 else f"{low}-{low + width - 1}" for low in sizes["low"]]
    labels[-1] = f"≥ {say.number(sizes['low'][-1])}"
    places = tuple(float(i) for i in range(len(counts)))
    found = {
        "classes": Panel(
            title="",
            x_label=say("app.result.size_axis", unit=say(f"unit.{facts['evidence']['counted']}")),
            y_label=say("app.result.classes_axis"),
            series=(Series(label="", style=0, x=places, y=tuple(map(float, counts)), form="bars"),),
            x_ticks=tuple(zip(places[:: 1 if width == 1 else 2], labels[:: 1 if width == 1 else 2], strict=True)),
            y_zero=True,
            large=True,
            description="; ".join(f"{label}: {count}" for label, count in zip(labels, counts, strict=True) if count),
        )
    }
    losses = [
        (one["column"], 100 * (one["loss"] if one["measured"] is None else one["measured"]))
        for one in facts["evidence"]["losses"]
    ]
    if losses:
        ranked = sorted(losses, key=lambda one: -one[1])
        found["losses"] = _ranked(ranked, say("app.result.loss_axis"), say)
    return found


def attack_title(name: str, given: str, say: Language) -> str:
    """The name of an attack in the language of the page."""
    return say(f"attack.{name}") if say.knows(f"attack.{name}") else given


def attack_figure(found: Mapping[str, Any], say: Language) -> Panels:
    """The rate of every attack with its interval, and the guess."""
    results = sorted(found["results"], key=lambda one: one["baseline"] - one["rate"])
    lines = [(float(line), one) for line, one in enumerate(results)]

    def rates(label: str, look: int, chosen: list[tuple[float, dict[str, Any]]]) -> Series:
        return Series(
            label=label,
            style=look,
            x=tuple(one["rate"] for _, one in chosen),
            y=tuple(line for line, _ in chosen),
            low=tuple(one["low"] for _, one in chosen),
            high=tuple(one["high"] for _, one in chosen),
            form="points",
        )

    above = rates(say("app.attacks.above"), BEYOND, [(y, one) for y, one in lines if one["low"] > one["baseline"]])
    others = rates(
        say("app.attacks.not_above"), WITHIN, [(y, one) for y, one in lines if one["low"] <= one["baseline"]]
    )
    guess = Series(
        label=say("attacks.guess"),
        style=REFERENCE,
        x=tuple(one["baseline"] for _, one in lines),
        y=tuple(line for line, _ in lines),
        form="points",
    )
    panel = Panel(
        title="",
        x_label=say("attacks.axis"),
        y_label="",
        series=tuple(one for one in (above, others, guess) if one.x),
        x_ticks=tuple((share / 4, say.share(share / 4)) for share in range(5)),
        y_ticks=tuple((line, attack_title(one["attack"], one["title"], say)) for line, one in lines),
        x_zero=True,
        intervals_across=True,
        large=True,
        description="; ".join(
            say(
                "attacks.words",
                attack=attack_title(one["attack"], one["title"], say),
                rate=say.share(one["rate"]),
                guess=say.share(one["baseline"]),
            )
            for one in results
        ),
    )
    return {"attacks": panel}


def curves(points: Sequence[Mapping[str, Any]], names: Sequence[str], say: Language, prefix: str = "") -> Panels:
    """Scores by round, a panel each; ``prefix`` tells them from others on the same page."""
    found = {}
    for name in names:
        known = [(float(one["round"]), float(one[name])) for one in points if isinstance(one.get(name), (int, float))]
        if known:
            title = say(f"app.score.{name}")
            line = Series(label=title, style=0, x=tuple(x for x, _ in known), y=tuple(y for _, y in known))
            apart = max(1, len(known) // 6)
            ticks = tuple((x, f"{x:g}") for x, _ in known[::apart])
            found[prefix + name] = Panel(
                title="", x_label=say("app.federation.round"), y_label=title, series=(line,), x_ticks=ticks
            )
    return found
