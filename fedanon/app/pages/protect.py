"""Protect: a method with k, l and t; tried on a sample while the sliders move, then run in full."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fedanon.app import charts
from fedanon.app.jobs import Job
from fedanon.app.project import ReleaseFolder
from fedanon.app.shell import State, go, render, text_of
from fedanon.data.schema import Schema
from fedanon.errors import ConfigError, FedanonError

KIND, COMPARE = "release", "compare"
#: seconds a preview may take; a method that searches for longer is run in full instead
PREVIEW = 8.0
LEAST_K, MOST_K, MOST_L = 2, 50, 10
#: that a class of all records has, and so asks for nothing
NO_T = 100
#: compared unless others are chosen
COMPARED = ("mondrian", "full_domain", "k_member", "oka")
KS = "3,5,10,20"


def show(state: State, request: Request, error: str = "") -> Response:
    """The page."""
    if not state.project.has_schema:
        return go("/open")
    schema = Schema.read(state.project.schema)
    if schema.undecided:
        return go("/columns")
    asked = _settings(state, schema)
    figures = charts.draw(state, charts.trade_off(state.compared, state.say)) if state.compared else {}
    return render(
        state,
        "protect",
        step="protect",
        error=error,
        methods=state.desk.ask("methods"),
        sensitive=schema.sensitive,
        unit=schema.unit,
        asked=asked,
        most_k=MOST_K,
        most_l=MOST_L,
        compared=state.compared,
        chosen=COMPARED,
        figures=figures,
        job=state.jobs.last(KIND),
        compare_job=state.jobs.last(COMPARE),
        command_words=_words(state, asked, "releases/NNN", "secret/NNN.key"),
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
    }


def _asked(state: State, form: FormData) -> dict[str, Any]:
    """What the form asks for, checked."""
    schema = Schema.read(state.project.schema)
    numbers = {name: text_of(form, name, str(usual)) for name, usual in (("k", 5), ("l", 1), ("t", NO_T), ("seed", 0))}
    if not all(value.isdigit() and len(value) < 10 for value in numbers.values()):
        raise ConfigError(state.say("app.protect.bad_number"))
    wanted: dict[str, Any] = {name: int(value) for name, value in numbers.items()}
    number = text_of(form, "column", "0")
    sensitive = schema.sensitive
    column = sensitive[int(number)] if number.isdigit() and int(number) < len(sensitive) else ""
    wanted |= {"method": text_of(form, "method", "mondrian"), "column": column}
    if wanted["method"] not in {one["name"] for one in state.desk.ask("methods")}:
        raise ConfigError(state.say("app.protect.bad_method"))
    if not LEAST_K <= wanted["k"] <= MOST_K or not 1 <= wanted["l"] <= MOST_L or wanted["t"] > NO_T:
        raise ConfigError(state.say("app.protect.bad_number"))
    return wanted


def _require(asked: dict[str, Any]) -> str:
    """What classes must keep beyond k, as the commands take it."""
    column = asked["column"]
    parts = [f"l={asked['l']}:{column}"] if asked["l"] > 1 and column else []
    parts += [f"t={asked['t'] / 100:g}:{column}"] if asked["t"] < NO_T and column else []
    return ",".join(parts)


def preview(state: State, request: Request, form: FormData) -> Response:
    """Loss and risk on a sample: a part of the page."""
    try:
        asked = _asked(state, form)
        state.desk.ask("prepare", **state.table())
        found = state.desk.ask(
            "preview", **state.table(), asked={**asked, "require": _require(asked)}, patience=PREVIEW
        )
    except FedanonError as failure:
        return render(state, "protect_preview", error=str(failure), preview=None, asked=None)
    if text_of(form, "keep"):
        state.settings = [*state.settings, {**asked, **found}][-2:]
    return render(
        state,
        "protect_preview",
        preview=found,
        asked=asked,
        command_words=_words(state, asked, "releases/NNN", "secret/NNN.key"),
    )


def run(state: State, request: Request, form: FormData) -> Response:
    """Make the release in full."""
    asked = _asked(state, form)
    start_release(state, asked, lambda folder, key: _words(state, asked, folder, key))
    state.project.save("protect", **asked)
    return go("/protect#run")


def start_release(state: State, asked: dict[str, Any], words_for: Callable[[str, str], list[str]]) -> None:
    """Start the command that makes the next release; ``words_for`` gives it for the folder and the row key."""
    Schema.read(state.project.schema).refuse_undecided()
    if state.jobs.running is not None:
        raise ConfigError(state.say("app.job.busy"))
    release = state.project.new_release()
    shutil.copyfile(state.project.schema, release.path / "schema.toml")
    words = words_for(state.project.relative(release.path), state.project.relative(release.row_key))
    made = {
        "file": f"release{state.project.release_ending}",
        "asked": asked,
        "source": state.project.source,
        "missing": state.missing,
        "command": words,
    }

    def finish(job: Job) -> None:
        facts = state.desk.ask("facts", **state.release_files(release, made), patience=900)
        release.write("facts", facts)
        release.write("release", {**made, "result": json.loads(job.output())})

    state.jobs.start(KIND, [words], about=release.number, finish=finish, undo=lambda: _undo(release))


def _undo(release: ReleaseFolder) -> None:
    shutil.rmtree(release.path, ignore_errors=True)
    release.row_key.unlink(missing_ok=True)


def _words(state: State, asked: dict[str, Any], folder: str, key: str) -> list[str]:
    """The command that makes the release."""
    words = ["anonymize", *state.project.source_options(), "--schema", f"{folder}/schema.toml"]
    words += [*state.project.missing_options, "--method", asked["method"], "--k", str(asked["k"])]
    words += ["--require", _require(asked)] if _require(asked) else []
    words += ["--seed", str(asked["seed"]), "-o", f"{folder}/release{state.project.release_ending}"]
    return [*words, "--row-key", key, "--audit", "audit.jsonl", "--json"]


# ---- several methods -----------------------------------------------------------------------------


def compare(state: State, request: Request, form: FormData) -> Response:
    """Run several methods with several k, for the plot of loss against risk."""
    known = {one["name"] for one in state.desk.ask("methods")}
    chosen = [name for name in form.getlist("methods") if isinstance(name, str) and name in known]
    if not chosen:
        raise ConfigError(state.say("app.protect.no_methods"))

    def finish(job: Job) -> None:
        state.compared = json.loads(job.output())

    state.jobs.start(COMPARE, [_compare_words(state, chosen)], finish=finish)
    return go("/protect#compare")


def _compare_words(state: State, methods: list[str]) -> list[str]:
    words = ["compare", *state.project.source_options(), "--schema", "schema.toml", *state.project.missing_options]
    return [*words, "--methods", ",".join(methods), "--k", KS, "--json"]
