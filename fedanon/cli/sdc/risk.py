"""`fedanon sdc risk`: how risky a table is, before anything is changed or afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, json_text, print_json, print_table
from fedanon.errors import ConfigError, SchemaError
from fedanon.fields import listed

if TYPE_CHECKING:
    from fedanon.data.table import Table
    from fedanon.io.manifest import Manifest

Keys = Annotated[
    str | None, typer.Option("--keys", help="Key columns a,b,c instead of the schema's quasi-identifiers.")
]


@options.takes_table_source
def risk(
    source: options.TableSource,
    keys: Keys = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size", help="Size of the largest sample unique that SUDA looks for; unlimited by default.", min=1
        ),
    ] = None,
    fraction: Annotated[
        float, typer.Option(help="Share of the population that is in the table, for DIS-SUDA.", min=1e-9, max=1.0)
    ] = 0.01,
    threshold: Annotated[
        float, typer.Option(help="Count the records with an individual risk above this.", min=0)
    ] = 0.1,
    most_listed: Annotated[int, typer.Option("--list", help="List this many of them, by row number.", min=0)] = 0,
    original: Annotated[
        str | None, typer.Option(help="Of a release: the original table, for its risk and the sampling weights.")
    ] = None,
    row_key: options.RowKey = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the numbers (JSON).")] = None,
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Report the risk by the keys: k-anonymity, individual risk, special uniques, l-diversity.

    Keys are what an attacker may know. Weights and households count if the schema declares them. A file that
    `sdc apply` wrote is known by the manifest beside it and measured by the keys of its chain; with --original, beside
    the risk of that. Only counts, shares and row numbers are reported, never the value of a cell.
    """
    from fedanon.io.atomic import atomic_write
    from fedanon.io.manifest import Manifest
    from fedanon.io.outputs import check_output

    beside = None if original is None else replace(source, file=original)
    read = [*source.inputs, *([] if beside is None else beside.inputs), row_key]
    check_output(output, inputs=read, endings=(".json",), force=force)
    chosen = listed(keys or "")
    asked = {"max_size": max_size, "fraction": fraction, "threshold": threshold, "most_listed": most_listed}
    with audited(audit, "sdc risk") as entry:
        entry["keys"] = keys
        manifest = None if source.file is None else Manifest.beside(Path(source.file))
        if manifest is None:
            _refuse_of_release(beside, row_key)
            profile, data = _of_table(source.load(), chosen, asked)
        else:
            profile, data = _of_release(source, manifest, chosen, beside, row_key, asked)
        entry["data_sha256"] = data
        if output is not None:
            atomic_write(output, json_text(profile))
            entry["written"] = [output.name]
    if as_json:
        print_json(profile)
        return
    _report(profile)
    if output is not None:
        console().print(f"Written: {output}")


def _refuse_of_release(original: options.TableSource | None, row_key: Path | None) -> None:
    if original is not None or row_key is not None:
        raise ConfigError("--original and --row-key go with a released file that has its manifest beside it.")


def _of_table(table: Table, keys: list[str], asked: dict[str, Any]) -> tuple[dict[str, Any], str]:
    from fedanon.data.key_choice import with_quasi_identifiers
    from fedanon.data.schema import Role
    from fedanon.sdc.risk_profile import table_risk

    undecided = table.schema.undecided
    if not keys and undecided:
        raise SchemaError(
            f"The role of {len(undecided)} columns is undecided, so which columns are keys is not known: "
            f"{', '.join(undecided)}. Decide in the schema, or name the keys: --keys a,b,c."
        )
    if unread := [name for name in keys if name in undecided]:
        raise SchemaError(
            f"The role of keys is undecided: {', '.join(unread)}. Decide in the schema: quasi_identifying."
        )
    counted = with_quasi_identifiers(table, keys) if keys else table
    left = [replace(counted.schema[name], role=Role.INSENSITIVE) for name in undecided]
    profile = table_risk(replace(counted, schema=counted.schema.replacing(*left)), **asked)
    return {**profile, **({"undecided": list(undecided)} if undecided else {})}, table.sha256


def _of_release(
    source: options.TableSource,
    manifest: Manifest,
    keys: list[str],
    original: options.TableSource | None,
    row_key: Path | None,
    asked: dict[str, Any],
) -> tuple[dict[str, Any], str]:
    """Return the profile of a release, with that of the original under ``original`` if it is given."""
    from fedanon.cli.sdc.released import read_released_keys
    from fedanon.data.schema import Schema
    from fedanon.sdc.risk_profile import risk_profile, table_risk

    assert source.file is not None
    table = None if original is None else original.load()
    declared = None if source.schema is None else Schema.read(source.schema)
    found = read_released_keys(Path(source.file), manifest, declared, keys, table, row_key)
    profile = risk_profile(found.view, found.weights, found.households, **asked)
    if found.table is None:
        return profile, manifest.expected_sha256
    # weights and households of rows that are not matched are unknown: like is compared with like
    beside = found.table if found.matched else replace(found.table, weights=None, households=None)
    return {**profile, "matched": found.matched, "original": table_risk(beside, **asked)}, manifest.expected_sha256


def _report(profile: dict[str, Any]) -> None:
    n, before = profile["n"], profile.get("original")
    out = console()
    out.print(
        f"{n:,} records; keys: {', '.join(profile['keys'])}; {profile['key_combinations']:,} combinations of them."
    )
    if "undecided" in profile:
        names = ", ".join(profile["undecided"])
        out.print(f"Not counted, since their role is undecided: {names}. The risk is higher if someone knows them.")
    _report_records(profile, before)
    _report_numbers(profile, before)
    contributions = [
        (entry["key"], entry["contribution"], entry["records"], entry["share"])
        for entry in profile["key_contributions"]
    ]
    print_table(
        "Keys that make records unique",
        ["key", "share of the SUDA scores (%)", "records with a unique that contains it", "share of all uniques"],
        contributions,
    )
    if profile["diversity"]:
        print_table(
            "Diversity of sensitive columns within key combinations", list(_DIVERSITY.values()), _diversity(profile)
        )
    if profile["above_threshold"]["listed"]:
        rows = [tuple(entry.values()) for entry in profile["above_threshold"]["listed"]]
        print_table("Records at the highest risk", ["row", "risk", "f", "F"], rows)
    out.print("Above the main part: a risk above the median plus twice the median deviation, and above 0.1.")
    if profile["silent_cells"]:
        out.print(
            f"{profile['silent_cells']:,} keys say nothing ('*' or missing): like each other only, or, as sdcMicro "
            "counts, like anything."
        )
    if not profile.get("matched", True):
        out.print(
            "The rows are not matched with the original: both are measured without sampling weights and households; "
            "give --row-key for them."
        )
    elif not profile["weighted"]:
        out.print(
            "No sampling weight is known: the table counts as the whole population, the most cautious assumption."
        )


def _report_records(profile: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Print how many records are at risk by each definition, beside those of the original."""
    names = ["risk", "records", "share", *([] if before is None else ["original"])]
    originals = [None] * len(_at_risk(profile)) if before is None else [row[1] for row in _at_risk(before)]
    rows = [(*row, *([] if before is None else [was])) for row, was in zip(_at_risk(profile), originals, strict=True)]
    print_table("Records at risk", names, rows)
    ends = ["0", *(f"({end - 0.1:.1f}, {end:.1f}]" for end in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)), "above 0.7"]
    now = profile["suda"]["dis_intervals"]
    was = [()] * len(now) if before is None else [(count,) for count in before["suda"]["dis_intervals"]]
    intervals = [(end, count, *more) for end, count, more in zip(ends, now, was, strict=True)]
    print_table("DIS-SUDA", ["risk", "records", *([] if before is None else ["original"])], intervals)
    edges, counts = profile["histogram"]["edges"], profile["histogram"]["records"]
    bars = [
        (f"{low:g} to {high:g}", count) for low, high, count in zip(edges, edges[1:], counts, strict=False) if count
    ]
    print_table("Individual risk, histogram", ["risk", "records"], bars)


def _at_risk(profile: dict[str, Any]) -> list[tuple[str, int, float]]:
    n = profile["n"]
    loose = {f"{name}, as sdcMicro counts": count for name, count, _ in _anonymity(profile["anonymity_sdcmicro"], n)}
    loose["risk above the main part, as sdcMicro counts"] = profile["individual_sdcmicro"]["above_main_part"]
    above = profile["above_threshold"]
    return [
        *_anonymity(profile["anonymity"], n),
        *_individual(profile, n),
        (f"risk above {above['threshold']:g}", above["records"], above["share"]),
        *((name, count, count / n) for name, count in loose.items()),
    ]


def _report_numbers(profile: dict[str, Any], before: dict[str, Any] | None) -> None:
    sections = [
        ("Individual risk", "individual", _INDIVIDUAL if profile["weighted"] else _UNWEIGHTED),
        ("Individual risk, as sdcMicro counts", "individual_sdcmicro", _SDCMICRO),
        ("Special uniques (SUDA)", "suda", _SUDA),
        ("Households", "household", _HOUSEHOLD),
    ]
    for title, section, names in sections:
        if section in profile:
            _numbers(title, profile[section], None if before is None else before.get(section), names)


_INDIVIDUAL = {
    "expected_reidentifications": "expected re-identifications (Benedetti-Franconi)",
    "global_risk": "global risk (Benedetti-Franconi)",
    "highest_risk": "highest individual risk (Benedetti-Franconi)",
    "expected_reidentifications_naive": "expected re-identifications (naive, 1/F)",
    "global_risk_naive": "global risk (naive, 1/F)",
    "highest_risk_naive": "highest individual risk (naive, 1/F)",
}
_UNWEIGHTED = {
    "expected_reidentifications": "expected re-identifications",
    "global_risk": "global risk",
    "highest_risk": "highest individual risk",
}
_SDCMICRO = {
    "expected_reidentifications": "expected re-identifications",
    "global_risk": "global risk",
    "highest_risk": "highest individual risk",
}
_SUDA = {
    "max_size": "keys in a unique, at most",
    "sample_uniques": "minimal sample uniques",
    "score_mean": "SUDA score, mean",
    "score_max": "SUDA score, highest",
    "dis_mean": "DIS-SUDA, mean",
    "dis_max": "DIS-SUDA, highest",
}
_HOUSEHOLD = {
    "households": "households",
    "expected_reidentifications": "expected re-identifications, by household",
    "expected_reidentifications_sdcmicro": "expected re-identifications, by household, as sdcMicro counts",
    "mean_risk": "mean risk that anyone in the household is re-identified",
    "highest_risk": "highest risk of a household",
}
_DIVERSITY = {
    "column": "sensitive column",
    "values": "values",
    "alone": "records that share one value",
    "distinct_min": "distinct l, lowest",
    "distinct_mean": "mean",
    "distinct_mean_sdcmicro": "mean, as sdcMicro counts",
    "entropy_min": "entropy l, lowest",
    "entropy_mean": "mean",
    "recursive_min": "recursive l, lowest",
    "recursive_mean": "mean",
}


def _numbers(title: str, facts: dict[str, Any], before: dict[str, Any] | None, names: dict[str, str]) -> None:
    if before is None:
        print_table(title, ["metric", "value"], [(text, facts[name]) for name, text in names.items()])
        return
    rows = [(text, facts[name], before[name]) for name, text in names.items()]
    print_table(title, ["metric", "modified", "original"], rows)


def _anonymity(counts: dict[str, int], n: int) -> list[tuple[str, int, float]]:
    labels = {name: name.replace("violations_", "fewer than ").replace("_", " like them in the ") for name in counts}
    labels = {name: text if "population" in text else f"{text} like them" for name, text in labels.items()}
    return [(labels[name], count, count / n) for name, count in counts.items()]


def _individual(profile: dict[str, Any], n: int) -> list[tuple[str, int, float]]:
    high, special = profile["individual"]["above_main_part"], profile["suda"]["records"]
    return [("risk above the main part", high, high / n), ("special uniques (SUDA)", special, special / n)]


def _diversity(profile: dict[str, Any]) -> list[list[Any]]:
    return [[facts[name] for name in _DIVERSITY] for facts in profile["diversity"]]
