"""Run by an interpreter that has pycanon: the numbers pycanon finds in released files, as JSON.

Read from standard input: a list of {"file", "quasi", "text", "number"}, the last two a sensitive column each.
"""

import json
import sys

import pandas as pd
from pycanon import anonymity


def values(job):
    # pycanon tells numbers from text by the type of the column, and takes "(missing)" as any other text
    frame = pd.read_csv(job["file"], keep_default_na=False)
    quasi, text, number = job["quasi"], [job["text"]], [job["number"]]
    return {
        "k": int(anonymity.k_anonymity(frame, quasi)),
        "l": int(anonymity.l_diversity(frame, quasi, text)),
        "entropy_l": float(anonymity.entropy_l_diversity(frame, quasi, text)),
        "alpha": float(anonymity.alpha_k_anonymity(frame, quasi, text)[0]),
        "t": float(anonymity.t_closeness(frame, quasi, text)),
        "t_ordered": float(anonymity.t_closeness(frame, quasi, number)),
        "beta": float(anonymity.basic_beta_likeness(frame, quasi, text)),
        "delta": float(anonymity.delta_disclosure(frame, quasi, text)),
    }


if __name__ == "__main__":
    json.dump([values(job) for job in json.load(sys.stdin)], sys.stdout)
