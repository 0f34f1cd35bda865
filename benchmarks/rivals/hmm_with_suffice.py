"""Our own Baum-Welch."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import suffice as sf
from benchmarks.contender import Data, Run
from benchmarks.problems.hmm import ITERATIONS, SYMBOLS


def model(data: Any, law: str, **options: Any) -> sf.HiddenMarkovModel:
    """A model with start values."""
    if law == "symbols":
        kind: Any = sf.Categorical(states=range(SYMBOLS))
        start: Any = data["symbols"]
    elif law == "3 columns":
        kind = sf.MultivariateNormal()
        options["covariance"] = "diagonal"
        start = [sf.MultivariateNormal(m, np.diag(v)) for m, v in zip(data["means"], data["variances"], strict=True)]
    else:
        kind = sf.Normal()
        start = [sf.Normal(float(m), float(v)) for m, v in zip(data["means"], data["variances"], strict=True)]
    given = {"initial": data["initial"], "transitions": data["transitions"], "emissions": start}
    fixed = list(given) if options.get("max_iter") == 0 else ()
    return sf.HiddenMarkovModel(len(data["initial"]), kind, **given, fixed=fixed, **options)


def fit(data: Data, *, law: str) -> Run:
    """From the arrays to the report."""

    def run() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The limit of steps is reached, as asked.
            found = model(data, law, max_iter=ITERATIONS, tolerance=0.0)
            found.fit(data["x"], lengths=data["lengths"])
        if law == "symbols":
            return found.initial_, found.transitions_, found.emission_probabilities_, data["means"], data["variances"]
        if law == "3 columns":
            return (
                found.initial_,
                found.transitions_,
                data["symbols"],
                found.means_,
                found.covars_.diagonal(axis1=1, axis2=2),
            )
        means = np.array([item.mean_ for item in found.emissions_])
        variances = np.array([item.variance_ for item in found.emissions_])
        return found.initial_, found.transitions_, data["symbols"], means, variances

    return run
