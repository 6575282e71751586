"""Protect: a method with k, l and t; tried on a sample while the sliders move, then run in full."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.jobs import Job
from fedanon.app.project import AUDIT, SCHEMA, ReleaseFolder
from fedanon.app.shell import FormError, PageView, State, go, text_of, view
from fedanon.data.schema import Schema
from fedanon.errors import FedanonError

KIND, COMPARE = "release", "compare"
#: seconds a preview may take; a method that searches for longer is run in full instead
PREVIEW = 8.0
LEAST_K, MOST_K, MOST_L = 2, 50, 10
#: that a class of all records has, and so asks for nothing
NO_T = 100
#: compared unless others are chosen
COMPARED = ("mondrian", "full_domain", "k_member", "oka")
KS = "3,5,10,20"
#: how a release is made: its file, its schema, its table, the releases before it
Made = Mapping[str, Any]


def show(state: State, request: Request) -> PageView | Response:
    """The page."""
    if not state.project.has_schema:
        return go("/open")
    schema = state.project.read_schema()
    if schema.undecided:
        return go("/columns")
    asked = _settings(state, schema)
    compared, series = state.project.measured(COMPARE), state.project.series
    return view(
        "protect",
        series={"releases": len(series.manifests()) if series.has_begun else 0, "fits": series.fits(schema)},
        methods=state.desk.ask("methods"),
        sensitive=schema.sensitive,
        unit=schema.unit,
        asked=asked,
        most_k=MOST_K,
        most_l=MOST_L,
        compared=compared,
        chosen=COMPARED,
        figures=charts.draw(state, charts.trade_off(compared, state.say)) if compared else {},
        job=state.jobs.last(KIND),
        compare_job=state.jobs.last(COMPARE),
        command_words=_words(state, asked, release_to_be(state, series=asked["series"])),
        compare_command=_compare_words(state, list(COMPARED)),
        preview=None,
    )


def _settings(state: State, schema: Schema) -> dict[str, Any]:
    kept = state.project.settings["protect"]
    column = kept.get("column", "")
    return {
        "method": kept["method"],
        "k": kept["k"],
        "l": kept.get("l", 1),
        "t": kept.get("t", NO_T),
        "column": column if column in schema.sensitive else next(iter(schema.sensitive), ""),
        "seed": kept["seed"],
        "series": state.project.series.fits(schema),
    }


def _asked(state: State, form: FormData) -> dict[str, Any]:
    """What the form asks for, checked."""
    schema = state.project.read_schema()
    numbers = {name: text_of(form, name, str(usual)) for name, usual in (("k", 5), ("l", 1), ("t", NO_T), ("seed", 0))}
    if not all(value.isdigit() and len(value) < 10 for value in numbers.values()):
        raise FormError(state, "protect.bad_number")
    wanted: dict[str, Any] = {name: int(value) for name, value in numbers.items()}
    number = text_of(form, "column", "0")
    sensitive = schema.sensitive
    column = sensitive[int(number)] if number.isdigit() and int(number) < len(sensitive) else ""
    wanted |= {"method": text_of(form, "method", "mondrian"), "column": column}
    wanted["series"] = bool(text_of(form, "series"))
    if wanted["method"] not in {one["name"] for one in state.desk.ask("methods")}:
        raise FormError(state, "protect.bad_method")
    if '"' in column and requirement(wanted):
        raise FormError(state, "protect.bad_column")
    if not LEAST_K <= wanted["k"] <= MOST_K or not 1 <= wanted["l"] <= MOST_L or wanted["t"] > NO_T:
        raise FormError(state, "protect.bad_number")
    return wanted


def requirement(asked: Mapping[str, Any]) -> str:
    """What classes must keep beyond k, as the commands take it; a name that is no plain word stands in quotes."""
    column = asked["column"] if re.fullmatch(r"\w*", asked["column"]) else f'"{asked["column"]}"'
    parts = [f"l={asked['l']}:{column}"] if asked["l"] > 1 and column else []
    parts += [f"t={asked['t'] / 100:g}:{column}"] if asked["t"] < NO_T and column else []
    return ",".join(parts)


def preview(state: State, request: Request, form: FormData) -> PageView:
    """Loss and risk on a sample: a part of the page."""
    try:
        asked = _asked(state, form)
        state.desk.ask("prepare", **state.table())
        found = state.desk.ask(
            "preview", **state.table(), asked={**asked, "require": requirement(asked)}, patience=PREVIEW
        )
    except FedanonError as failure:
        return view("protect_preview", error=str(failure), preview=None)
    if text_of(form, "keep"):
        state.settings = [*state.settings, {**asked, **found}][-2:]
    return view("protect_preview", preview=found)


def run(state: State, request: Request, form: FormData) -> Response:
    """Make the release in full."""
    asked = _asked(state, form)
    start_release(state, asked, lambda made: _words(state, asked, made), page="/protect", series=asked["series"])
    state.project.save("protect", **{name: value for name, value in asked.items() if name != "series"})
    return go("/protect#run")


def start_release(
    state: State, asked: dict[str, Any], words_for: Callable[[Made], list[str]], *, page: str, series: bool = False
) -> None:
    """Start the command that makes the next release, alone or in the series of the project."""
    project = state.project
    schema = project.read_schema()
    schema.refuse_undecided()
    if state.jobs.running is not None:
        raise FormError(state, "job.busy")
    if series and project.series.has_begun and not project.series.fits(schema):
        raise FormError(state, "protect.other_series")
    release = project.new_release()
    made = {**release_to_be(state, release.number, series=series), "asked": asked}
    shutil.copyfile(project.schema, release.path / SCHEMA)
    if series and not made["previous"]:
        project.secret_folder()
        project.series.folder.mkdir(mode=0o700, exist_ok=True)
        shutil.copyfile(project.schema, project.series.schema)
    made["command"] = words_for(made)

    def finish(job: Job) -> None:
        facts = state.desk.ask("facts", **state.release_files(release, made), patience=900)
        release.write("facts", facts)
        release.write("release", made)

    state.jobs.start(
        KIND,
        [made["command"]],
        about=release.number,
        page=page,
        leads_to=f"/result/{release.number}",
        finish=finish,
        undo=lambda: undo_release(release, made),
    )


def release_to_be(state: State, number: str = "NNN", *, series: bool = False) -> dict[str, Any]:
    """How the release of a number is made: what is known before it is."""
    project = state.project
    return {
        "number": number,
        "file": f"release{project.release_ending}",
        "schema": f"secret/series/{SCHEMA}" if series else f"releases/{number}/{SCHEMA}",
        "key": project.key if project.needs_key else "",
        "series": series,
        "previous": project.series.manifests() if series else [],
        "source": project.source,
        "missing": project.missing,
    }


def undo_release(release: ReleaseFolder, made: Made) -> bool:
    """Remove what there is of a release; what is written of a series is known to its ledger, and stands."""
    if made["series"] and (release.path / made["file"]).exists():
        return False
    shutil.rmtree(release.path, ignore_errors=True)
    release.row_key.unlink(missing_ok=True)
    return True


def _words(state: State, asked: dict[str, Any], made: Made) -> list[str]:
    """The command that makes the release."""
    words = ["anonymize", *state.project.table_words(made["schema"], publishes=True)]
    words += ["--method", asked["method"], "--k", str(asked["k"])]
    words += ["--require", requirement(asked)] if requirement(asked) else []
    words += ["--series"] if made["series"] and not made["previous"] else []
    words += [word for one in made["previous"] for word in ("--previous", one)]
    return [*words, "--seed", str(asked["seed"]), *output_words(made), "--audit", AUDIT, "--json"]


def output_words(made: Made) -> list[str]:
    """Where a command writes a release, and which row shows which record."""
    return ["-o", f"releases/{made['number']}/{made['file']}", "--row-key", f"secret/{made['number']}.key"]


# ---- several methods -----------------------------------------------------------------------------


def compare(state: State, request: Request, form: FormData) -> Response:
    """Run several methods with several k, for the plot of loss against risk."""
    known = {one["name"] for one in state.desk.ask("methods")}
    chosen = [name for name in form.getlist("methods") if isinstance(name, str) and name in known]
    if not chosen:
        raise FormError(state, "protect.no_methods")

    table = state.project.table_identity

    def finish(job: Job) -> None:
        state.project.keep_measured(COMPARE, table, json.loads(job.output()))

    state.jobs.start(COMPARE, [_compare_words(state, chosen)], page="/protect", finish=finish)
    return go("/protect#compare")


def _compare_words(state: State, methods: list[str]) -> list[str]:
    return ["compare", *state.project.table_words(), "--methods", ",".join(methods), "--k", KS, "--json"]
