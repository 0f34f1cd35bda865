"""Our own chain CRF."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import suffice as sf
from benchmarks.contender import Data, Run
from benchmarks.problems.crf import C2, MOST, sequences


@dataclass(frozen=True)
class Tagger:
    """A model as plain data, so that it can be sent to another process."""

    plain: Any

    def __call__(self, X: Any) -> list[list[str]]:
        """Labels of sequences."""
        return sf.ChainCRF.from_dict(self.plain).predict(X)  # type: ignore[no-any-return]


def fit(data: Data, *, steps: int, all_weights: bool = False) -> Run:
    """A given number of iterations; with weights for the labels seen with a feature, or for all of them."""
    model = sf.ChainCRF(
        prior=_prior(),
        max_iter=steps,
        all_possible_states=all_weights,
        all_possible_transitions=all_weights,
    )
    return _run(data, model)


def reach(data: Data) -> Run:
    """Until the objective is as good as the one given."""
    target = float(data["target"])
    stop = None if target != target else lambda state: state.objective >= -target
    return _run(data, sf.ChainCRF(prior=_prior(), max_iter=MOST, callback=stop))


def _prior() -> sf.Normal:
    return sf.Normal(variance=0.5 / C2)


def _run(data: Data, model: sf.ChainCRF) -> Run:
    X, y = sequences(data, "train")

    def run() -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A limit on the steps is reached, as asked.
            model.fit(X, y)
        return -model.report_.objective, model.n_iter_, Tagger(model.to_dict())

    return run
