"""An intensive-care ward of 37 variables: a Bayesian network, and a Markov network of five of them.

The rows are drawn from the network in ``ward.bif.gz``, which ``tools/make_demo_data.py`` writes out.
"""

from __future__ import annotations

import numpy as np

import suffice as sf
from suffice.demo.exhibits import Exhibit, bundled

SEEN = {"blood_pressure": "low", "vein_pressure": "high", "temperature": "normal"}
#: A cycle without a chord: no closed form has its maximum.
CIRCULATION = [
    ("stress", "heart_rate"),
    ("heart_rate", "cardiac_output"),
    ("cardiac_output", "blood_pressure"),
    ("blood_pressure", "vessel_resistance"),
    ("vessel_resistance", "stress"),
]


def bayesian_network() -> Exhibit:
    """All tables from one pass over the rows, compared with those that the rows were drawn from."""
    truth = sf.read(bundled("ward.bif.gz"))
    net = sf.BayesianNetwork(truth, prior="bdeu").fit(bundled("ward.csv.gz"))
    gained = net.score(bundled("ward.csv.gz")) - truth.score(bundled("ward.csv.gz"))
    asked = f"P(heart_failure | {', '.join(f'{name} {state}' for name, state in SEEN.items())})"
    finding = (
        f"{asked}, exactly:",
        str(net.query("heart_failure", given=SEEN)),
        "and under the network that the rows were drawn from:",
        str(truth.query("heart_failure", given=SEEN)),
        f"The fit gives the rows that it has seen {gained:.4f} nats a row more than the truth does.",
    )
    about = f"{len(net.nodes)} variables, {len(net.edges)} arrows, {net.report_.rows:,} rows; prior BDeu of 10 rows."
    return Exhibit("ward", "A Bayesian network of an intensive-care ward", about, finding, net)


def markov_network() -> Exhibit:
    """The same fit by two methods that share nothing but the answer."""
    rows = bundled("ward.csv.gz")
    scaled = sf.MarkovNetwork(CIRCULATION, solver="ipf").fit(rows)
    climbed = sf.MarkovNetwork(CIRCULATION, solver="lbfgs").fit(rows)
    apart = max(float(np.abs(scaled.marginal(e).values - climbed.marginal(e).values).max()) for e in CIRCULATION)
    low = {"blood_pressure": "low"}
    finding = (
        f"P(stress | blood_pressure low), by iterative proportional fitting ({scaled.n_iter_} iterations):",
        str(scaled.query("stress", given=low)),
        f"by L-BFGS ({climbed.n_iter_} iterations):",
        str(climbed.query("stress", given=low)),
        f"Log-likelihoods {scaled.report_.log_likelihood:.6f} and {climbed.report_.log_likelihood:.6f}; no margin of a "
        f"pair differs by more than {apart:.0e}.",
    )
    about = "Five variables of the ward in a cycle without a chord, so that only iterations find the maximum."
    return Exhibit("circulation", "A Markov network by two methods", about, finding, scaled)
