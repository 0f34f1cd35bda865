"""ALARM, a patient under anaesthesia in 37 variables: a Bayesian network, and a Markov network of four of them.

The rows are drawn from the network in ``alarm.bif.gz``, which ``tools/make_demo_data.py`` learns and writes out.
"""

from __future__ import annotations

import numpy as np

import suffice as sf
from suffice.demo.exhibits import Exhibit, bundled

SEEN = {"BP": "LOW", "CVP": "HIGH"}
ASKED = "HYPOVOLEMIA"
#: A cycle without a chord: no closed form has its maximum.
CIRCULATION = [
    ("CATECHOL", "CO"),
    ("CO", "BP"),
    ("BP", "TPR"),
    ("TPR", "CATECHOL"),
]


def bayesian_network() -> Exhibit:
    """All tables from one pass over the rows, compared with those that the rows were drawn from."""
    truth = sf.read(bundled("alarm.bif.gz"))
    net = sf.BayesianNetwork(truth, prior="bdeu").fit(bundled("alarm.csv.gz"))
    gained = net.score(bundled("alarm.csv.gz")) - truth.score(bundled("alarm.csv.gz"))
    asked = f"P({ASKED} | {', '.join(f'{name} {state}' for name, state in SEEN.items())})"
    finding = (
        f"{asked}, exactly:",
        str(net.query(ASKED, given=SEEN)),
        "and under the network that the rows were drawn from:",
        str(truth.query(ASKED, given=SEEN)),
        f"The fit gives the rows that it has seen {gained:.4f} nats per row more than the truth does.",
    )
    about = f"{len(net.nodes)} variables, {len(net.edges)} arrows, {net.report_.rows:,} rows; prior BDeu of 10 rows."
    return Exhibit("alarm", "ALARM, a Bayesian network of a patient under anaesthesia", about, finding, net)


def markov_network() -> Exhibit:
    """The same fit by two methods that share nothing but the answer."""
    rows = bundled("alarm.csv.gz")
    scaled = sf.MarkovNetwork(CIRCULATION, solver="ipf").fit(rows)
    climbed = sf.MarkovNetwork(CIRCULATION, solver="lbfgs").fit(rows)
    apart = max(float(np.abs(scaled.marginal(e).values - climbed.marginal(e).values).max()) for e in CIRCULATION)
    low = {"BP": "LOW"}
    finding = (
        f"P(CATECHOL | BP LOW), by iterative proportional fitting ({scaled.n_iter_} iterations):",
        str(scaled.query("CATECHOL", given=low)),
        f"by L-BFGS ({climbed.n_iter_} iterations):",
        str(climbed.query("CATECHOL", given=low)),
        f"Log-likelihoods {scaled.report_.log_likelihood:.6f} and {climbed.report_.log_likelihood:.6f}; no margin of a "
        f"pair differs by more than {apart:.0e}.",
    )
    about = "Four variables of ALARM in a cycle without a chord, so that only iterations find the maximum."
    return Exhibit("circulation", "A Markov network by two methods", about, finding, scaled)
