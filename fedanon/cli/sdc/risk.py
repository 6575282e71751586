"""`fedanon sdc risk`: how risky a table is before anything is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedanon.cli import options
from fedanon.cli.audit import AuditFile, audited
from fedanon.cli.output import console, json_text, print_json, print_table

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
            "--max-size", help="Size of the largest sample unique SUDA looks for; any size by default.", min=1
        ),
    ] = None,
    fraction: Annotated[
        float, typer.Option(help="Share of the population that is in the table, for DIS-SUDA.", min=1e-9, max=1.0)
    ] = 0.01,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Also write the numbers (JSON).")] = None,
    force: options.Force = False,
    audit: AuditFile = None,
    as_json: options.Json = False,
) -> None:
    """Report the risk by the keys of the original table: k-anonymity, individual risk, special uniques, l-diversity.

    Keys are what an attacker may know. Weights and households count if the schema declares them.
    Only counts and shares are reported, never the value of a cell.
    """
    from fedanon.data.key_choice import with_quasi_identifiers
    from fedanon.io.atomic import atomic_write
    from fedanon.io.outputs import check_output
    from fedanon.sdc.risk_profile import risk_profile

    check_output(output, inputs=source.inputs, endings=(".json",), force=force)
    with audited(audit, "sdc risk") as entry:
        table = source.load()
        entry |= {"keys": keys, "data_sha256": table.sha256}
        if keys is not None:
            table = with_quasi_identifiers(table, [name.strip() for name in keys.split(",")])
        profile = risk_profile(table, max_size=max_size, fraction=fraction)
        if output is not None:
            atomic_write(output, json_text(profile))
            entry["written"] = [output.name]
    if as_json:
        print_json(profile)
        return
    _report(profile)
    if output is not None:
        console().print(f"Written: {output}")


def _report(profile: dict[str, Any]) -> None:
    n = profile["n"]
    out = console()
    out.print(
        f"{n:,} records; keys: {', '.join(profile['keys'])}; {profile['key_combinations']:,} combinations of them."
    )
    print_table("Records at risk", ["risk", "records", "share"], [*_anonymity(profile, n), *_individual(profile, n)])
    _numbers("Individual risk", profile["individual"], _INDIVIDUAL if profile["weighted"] else _UNWEIGHTED)
    _numbers("Special uniques (SUDA)", profile["suda"], _SUDA)
    contributions = [(entry["key"], entry["records"], entry["share"]) for entry in profile["key_contributions"]]
    print_table(
        "Keys that make records unique",
        ["key", "records with a unique that contains it", "share of all uniques"],
        contributions,
    )
    if profile["diversity"]:
        print_table(
            "Diversity of sensitive columns within key combinations", list(_DIVERSITY.values()), _diversity(profile)
        )
    if "household" in profile:
        _numbers("Households", profile["household"], _HOUSEHOLD)
    out.print("Above the main part: a risk above the median plus twice the median deviation, and above 0.1.")
    if not profile["weighted"]:
        out.print("The schema names no weight: the table counts as the whole population, the most cautious assumption.")


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
    "mean_risk": "mean risk that anyone in the household is re-identified",
    "highest_risk": "highest risk of a household",
}
_DIVERSITY = {
    "column": "sensitive column",
    "values": "values",
    "alone": "records that share one value",
    "distinct_min": "distinct l, lowest",
    "distinct_mean": "mean",
    "entropy_min": "entropy l, lowest",
    "entropy_mean": "mean",
    "recursive_min": "recursive l, lowest",
    "recursive_mean": "mean",
}


def _numbers(title: str, facts: dict[str, Any], names: dict[str, str]) -> None:
    print_table(title, ["metric", "value"], [(text, facts[name]) for name, text in names.items()])


def _anonymity(profile: dict[str, Any], n: int) -> list[tuple[str, int, float]]:
    labels = {
        name: name.replace("violations_", "fewer than ").replace("_", " like them in the ")
        for name in profile["anonymity"]
    }
    labels = {name: text if "population" in text else f"{text} like them" for name, text in labels.items()}
    return [(labels[name], count, count / n) for name, count in profile["anonymity"].items()]


def _individual(profile: dict[str, Any], n: int) -> list[tuple[str, int, float]]:
    high, special = profile["individual"]["above_main_part"], profile["suda"]["records"]
    return [("risk above the main part", high, high / n), ("special uniques (SUDA)", special, special / n)]


def _diversity(profile: dict[str, Any]) -> list[list[Any]]:
    return [[facts[name] for name in _DIVERSITY] for facts in profile["diversity"]]
