"""Every fitted value keeps the contract: it scores what users give, counts its parameters, and cannot be written to."""

import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(7)
STATES = {name: RNG.integers(0, 2, 80) for name in "abc"}
REALS = {name: RNG.normal(size=60) for name in "xyz"}
WORDS = [list("abab"), list("aab"), list("bba")]
STEPS = [RNG.normal(size=(6, 2)), RNG.normal(size=(4, 2))]
LABELS = [list("NVNVNV"), list("NNVV")]
GRAPHS = [sf.GraphExample.chain(step) for step in STEPS]
COUNTS = RNG.poisson(np.exp(0.3 * REALS["x"]))

FITS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "network": (sf.BayesianNetwork([("a", "b"), ("b", "c")]).fit(STATES), (STATES,)),
    "linear-Gaussian": (sf.BayesianNetwork([("x", "y"), ("y", "z")]).fit(REALS), (REALS,)),
    "hidden": (sf.BayesianNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}).fit(STATES), (STATES,)),
    "Markov": (sf.MarkovNetwork([("a", "b"), ("b", "c"), ("c", "a")]).fit(STATES), (STATES,)),
    "Gaussian graph": (sf.GaussianGraph([("x", "y"), ("y", "z")]).fit(REALS), (REALS,)),
    "chain": (sf.MarkovChain().fit(WORDS), (WORDS,)),
    "hidden chain": (sf.HiddenMarkovModel(2, sf.Categorical()).fit(WORDS), (WORDS,)),
    "chain field": (sf.ChainCRF(sf.Normal(variance=1.0)).fit(STEPS, LABELS), (STEPS, LABELS)),
    "graph field": (sf.GraphCRF(sf.Normal(variance=1.0)).fit(GRAPHS, LABELS), (GRAPHS, LABELS)),
    "regression": (
        sf.GLM("poisson").fit(np.column_stack([REALS["x"]]), COUNTS),
        (np.column_stack([REALS["x"]]), COUNTS),
    ),
    "Normal": (sf.Normal().fit(REALS["x"]), (REALS["x"],)),
    "Categorical": (sf.Categorical().fit(list("abcab")), (list("abc"),)),
    "MultivariateNormal": (sf.MultivariateNormal().fit(REALS), (REALS,)),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_value_scores_what_its_model_scores(name: str) -> None:
    model, given = FITS[name]
    scores = model.fitted_.score_samples(*given)
    np.testing.assert_array_equal(scores, model.score_samples(*given))
    assert np.isfinite(scores).all()
    assert model.n_params_ <= model.fitted_.n_params  # What rows determine may be less, with hidden variables.
    assert isinstance(model.fitted_.to_dict(), dict)
    assert model.fitted_.portrait().title


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Arrays among the fields of a frozen value, and of frozen values in it."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_of(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from arrays_of(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from arrays_of(getattr(value, field.name, None))


@pytest.mark.parametrize("name", FITS)
def test_parameters_of_a_fitted_value_cannot_be_written_to(name: str) -> None:
    for model in (FITS[name][0], pickle.loads(pickle.dumps(FITS[name][0]))):
        assert not [array.shape for array in arrays_of(model.fitted_) if array.flags.writeable]
