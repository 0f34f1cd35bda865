"""A Bayesian network on bundled data: tables and a real node, questions, and gaps.

The data are 5,000 visits drawn from a known network with a fixed seed by ``tools/make_demo_data.py``; a sixth of the
X-rays was not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import suffice as sf

DATA = Path(__file__).with_name("infections.csv.gz")


def run(folder: Path, say: Callable[[str], None]) -> None:
    """Fit, print a table, a regression, answers and receipts, and write the networks."""
    folder.mkdir(parents=True, exist_ok=True)
    say("--- a network: smoker, infection -> cough; infection -> temperature\n")
    net = sf.BayesianNetwork({"cough": ["smoker", "infection"], "temperature": ["infection"]}, prior=1.0).fit(DATA)
    say(f"{net.table('cough')}\n\n{net.table('temperature')}\n")
    seen = {"cough": "yes", "temperature": 38.4}
    say(f"P(infection | cough, 38.4 degrees), exactly:\n{net.query('infection', given=seen)}\n")
    say(f"{net.report_}\n")
    net.write(folder / "infections.json")

    say("--- gaps: every sixth X-ray was not taken; EM sums over what was not seen\n")
    rays = sf.BayesianNetwork({"cough": ["smoker", "infection"], "xray": ["infection"]}, prior=1.0).fit(DATA)
    say(f"{rays.table('xray')}\n")
    say(f"P(infection | cough, shadow):\n{rays.query('infection', given={'cough': 'yes', 'xray': 'shadow'})}\n")
    say(f"{rays.report_}\n")
    rays.write(folder / "infections.bif")
