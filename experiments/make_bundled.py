r"""Rebuild the slim bundled tables randhie.csv.xz and nhanes.csv.xz from their source files.

The sources are the files of two Python packages, which are not needed at run time:

* RAND HIE: ``statsmodels/datasets/randhie/src/randhie.csv`` (20,190 x 45);
* NHANES 2017-18: ``nhanes/combined_data/2017-2018/NHANES_data_2017-2018.tsv`` of nhanes 0.5.1
  (8,366 x 198).

The output is deterministic: the same sources give the same csv bytes (UTF-8, line feeds, rows in
source order), and the xz settings are fixed. What was derived, and why, is told in the README.md of
the bundled data. Only the standard library is used.

Example::

    python experiments/make_bundled.py --randhie randhie.csv --nhanes NHANES_data_2017-2018.tsv \
        --out fedanon/datasets/bundled
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import lzma
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

Row = dict[str, str]

NHANES_EDUCATION = {
    "Less than 9th grade": "Less than 9th grade",
    "9-11th grade (Includes 12th grade with no diploma)": "9th-12th grade no diploma",
    "High school graduate/GED or equivalent": "High school graduate",
    "Some college or AA degree": "Some college or AA degree",
    "College graduate or above": "College graduate",
    "Don't Know": "",
    "": "",
}
NHANES_ETHNICITY = {
    "Mexican American": "Mexican American",
    "Other Hispanic": "Other Hispanic",
    "Non-Hispanic White": "Non-Hispanic White",
    "Non-Hispanic Black": "Non-Hispanic Black",
    "Non-Hispanic Asian": "Non-Hispanic Asian",
    "Other Race - Including Multi-Racial": "Other or multiracial",
}
NHANES_HEALTH = {
    "Excellent": "excellent",
    "Very good": "very good",
    "Good": "good",
    "Fair or": "fair",
    "Poor?": "poor",
    "": "",
}
NHANES_SMOKING = {"Every day": "current", "Some days": "current", "Not at all": "former"}
NHANES_DIABETES = {"1": "yes", "0": "no", "Borderline": "no"}


def yes_no(text: str) -> str:
    """Translate a 0/1 cell; any other number (a group mean put in by the source) is missing."""
    value = float(text) if text else math.nan
    return {0.0: "no", 1.0: "yes"}.get(value, "")


def flag(text: str) -> str:
    """Translate a 0/1 cell of NHANES, in which "Don't Know" and the empty cell are missing."""
    return "" if text in ("", "Don't Know") else yes_no(text)


def whole(text: str) -> str:
    """Round a number to a whole one; the empty cell stays empty."""
    return str(round(float(text))) if text else ""


def decimals(text: str, digits: int) -> str:
    """Write a number with a fixed number of decimals; the empty cell stays empty."""
    return f"{float(text):.{digits}f}" if text else ""


def schooling(text: str) -> str:
    """Keep whole and half years of schooling; any other fraction is a group mean, hence missing."""
    value = float(text) if text else math.nan
    return f"{value:g}" if (2 * value) % 1 == 0 else ""


def mean_reading(texts: list[str], above: float) -> str:
    """Average the readings greater than ``above`` to one decimal; empty if there is none."""
    readings = [float(text) for text in texts if text and float(text) > above]
    return f"{fmean(readings):.1f}" if readings else ""


def randhie_rows(source: Path) -> Iterator[Row]:
    """Yield the year-1 rows of the RAND HIE, one a person."""
    with source.open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            if float(row["year"]) != 1:
                continue
            yield {
                "person": whole(row["zper"]),
                "site": "S" + whole(row["site"]),
                "xage": str(math.floor(float(row["xage"]))),
                "female": yes_no(row["female"]),
                "black": yes_no(row["black"]),
                "educdec": schooling(row["educdec"]),
                "income": whole(row["income"]),
                "num": whole(row["num"]),
                "coins": whole(row["coins"]),
                "idp": yes_no(row["idp"]),
                "mdeoff": whole(row["mdeoff"]),
                "tookphys": yes_no(row["tookphys"]),
                "physlm": yes_no(row["physlm"]),
                "disea": decimals(row["disea"], 1),
                "mhi": decimals(row["mhi"], 1),
                "poor_health": yes_no(str(int(row["hlthf"] == "1" or row["hlthp"] == "1"))),
                "any_md_visit": yes_no(str(int(float(row["mdvis"]) > 0))),
            }


def nhanes_rows(source: Path) -> Iterator[Row]:
    """Yield the adults (20 or older) of NHANES who answered the diabetes question."""
    with source.open(newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle, delimiter="\t"):
            if float(row["AgeInYearsAtScreening"]) < 20 or not row["DoctorToldYouHaveDiabetes"]:
                continue
            smoked = flag(row["SmokedAtLeast100CigarettesInLife"])
            order = ("1St", "2Nd", "3Rd")
            yield {
                "person": whole(row["SEQN"]),
                "age": whole(row["AgeInYearsAtScreening"]),
                "gender": row["Gender"].lower(),
                "ethnicity": NHANES_ETHNICITY[row["RacehispanicOriginWNhAsian"]],
                "education": NHANES_EDUCATION[row["EducationLevelAdults20"]],
                "marital_status": row["MaritalStatus"],
                "household_size": row["TotalNumberOfPeopleInTheHousehold"][:1],
                "income_ratio": decimals(row["RatioOfFamilyIncomeToPoverty"], 2),
                "military_service": flag(row["ServedActiveDutyInUsArmedForces"]),
                "health_insurance": flag(row["CoveredByHealthInsurance"]),
                "general_health": NHANES_HEALTH[row["GeneralHealthCondition"]],
                "bmi": decimals(row["BodyMassIndexKgm2"], 1),
                "waist_cm": decimals(row["WaistCircumferenceCm"], 1),
                "systolic_bp": mean_reading([row[f"SystolicBloodPres{n}RdgMmHg"] for n in order], above=0.5),
                "diastolic_bp": mean_reading([row[f"DiastolicBloodPres{n}RdgMmHg"] for n in order], above=0.5),
                "pulse": whole(row["60SecPulse30SecPulse2"]),
                "total_cholesterol": whole(row["TotalCholesterolMgdl"]),
                "hdl_cholesterol": whole(row["DirectHdlcholesterolMgdl"]),
                "smoking": (
                    NHANES_SMOKING.get(row["DoYouNowSmokeCigarettes"], "")
                    if smoked == "yes"
                    else {"no": "never"}.get(smoked, "")
                ),
                "vigorous_recreation": flag(row["VigorousRecreationalActivities"]),
                "sleep_hours": decimals(row["SleepHoursWeekdaysOrWorkdays"], 1),
                "heart_attack": flag(row["EverToldYouHadHeartAttack"]),
                "stroke": flag(row["EverToldYouHadAStroke"]),
                "diabetes": NHANES_DIABETES[row["DoctorToldYouHaveDiabetes"]],
            }


def write_table(rows: list[Row], target: Path) -> str:
    """Write rows as xz-compressed csv and return the SHA-256 of the uncompressed bytes."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    data = buffer.getvalue().encode("utf-8")
    preset = 9 | lzma.PRESET_EXTREME
    target.write_bytes(lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=preset))
    return hashlib.sha256(data).hexdigest()


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, write the tables, and print rows, columns, missing cells, SHA-256."""
    parser = argparse.ArgumentParser(description="Rebuild the slim bundled tables.")
    parser.add_argument("--randhie", type=Path, help="source randhie.csv (20,190 x 45)")
    parser.add_argument("--nhanes", type=Path, help="source NHANES_data_2017-2018.tsv")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    if options.randhie is None and options.nhanes is None:
        parser.error("give --randhie, --nhanes or both")
    options.out.mkdir(parents=True, exist_ok=True)
    for name, source, reader in (
        ("randhie", options.randhie, randhie_rows),
        ("nhanes", options.nhanes, nhanes_rows),
    ):
        if source is None:
            continue
        rows = list(reader(source))
        digest = write_table(rows, options.out / f"{name}.csv.xz")
        missing = {c: n for c in rows[0] if (n := sum(not row[c] for row in rows))}
        print(f"{name}.csv: {len(rows)} x {len(rows[0])}, sha256 {digest}")
        print(f"  missing cells: {missing}")


if __name__ == "__main__":
    main()
