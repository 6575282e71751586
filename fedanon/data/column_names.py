"""What the name of a column suggests about its role; never more than a hint."""

from __future__ import annotations

import re


def _hints(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: direct identifiers: HIPAA Safe Harbor's list (45 CFR 164.514(b)(2)) and the usual names of other countries
IDENTIFYING = _hints(
    "id ids identifier uuid guid name names surname firstname lastname fullname forename ssn cpf cns rg nhs nino mrn "
    "email mail phone telephone tel mobile fax address street addr passport license licence plate vin account "
    "beneficiary certificate serial device ip ipaddress url website biometric fingerprint photo image"
)
#: the names under which one person's rows are told apart
PERSON = _hints("person patient subject participant individual respondent member mrn ssn cpf cns nhs")
#: indirect identifiers: things a neighbour may know
QUASI_IDENTIFYING = _hints(
    "age sex gender race ethnicity ethnic zip zipcode postal postcode cep birth birthdate birthday dob born education "
    "educ school schooling marital married occupation job profession workclass employer country nationality native "
    "citizenship language religion state county city town municipality region district income salary wage household "
    "height weight admission discharge death date"
)
#: what may harm a person when it becomes known
SENSITIVE = _hints("diagnosis disease icd hiv condition outcome treatment medication")
#: codes of places, which are text even where they are made of digits
POSTAL = _hints("zip zipcode postal postcode cep")

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words(name: str) -> set[str]:
    """The words of a column name: 'patientName', 'patient_name' and 'Patient name' have the same."""
    return {word.lower() for word in _WORDS.findall(name)} | {name.lower()}


def suggests(name: str, hints: frozenset[str]) -> bool:
    """Whether a word of the column's name is one of ``hints``."""
    return not words(name).isdisjoint(hints)
