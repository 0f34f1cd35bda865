"""hmmlearn, scaled recursions."""

from __future__ import annotations

import logging
import warnings
from typing import Any

from hmmlearn import hmm

from benchmarks.contender import Data, Run
from benchmarks.problems.hmm import ITERATIONS


def fit(data: Data, *, law: str) -> Run:
    """A given number of steps from given values; a tolerance below zero so that none is left out."""
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    x, size = data["x"].reshape(len(data["x"]), -1), len(data["initial"])
    options: dict[str, Any] = {
        "n_components": size, "n_iter": ITERATIONS, "tol": -1e300, "init_params": "", "implementation": "scaling",
    }  # fmt: skip

    def run() -> object:
        if law == "symbols":
            model: Any = hmm.CategoricalHMM(**options)
            model.emissionprob_ = data["symbols"].copy()
        else:
            # Weak priors are part of its defaults; without them it is maximum likelihood.
            model = hmm.GaussianHMM(
                **options, covariance_type="diag", covars_prior=0.0, covars_weight=1.0, means_weight=0.0, min_covar=0.0
            )
            model.means_, model.covars_ = (
                data["means"].reshape(size, -1).copy(),
                data["variances"].reshape(size, -1).copy(),
            )
        model.startprob_, model.transmat_ = data["initial"].copy(), data["transitions"].copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x, data["lengths"])
        if law == "symbols":
            return model.startprob_, model.transmat_, model.emissionprob_, data["means"], data["variances"]
        variances = model.covars_.diagonal(axis1=1, axis2=2)
        if law == "3 columns":
            return model.startprob_, model.transmat_, data["symbols"], model.means_, variances
        return model.startprob_, model.transmat_, data["symbols"], model.means_[:, 0], variances.ravel()

    return run
