"""Calls that users make by habit mean what they think, or are refused: nothing is misread without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

RNG = np.random.default_rng(20)
TEXT = pd.DataFrame({"a": RNG.choice(list("xy"), 200), "b": RNG.choice(list("uv"), 200)})
REALS = pd.DataFrame({"u": RNG.normal(size=200), "v": RNG.normal(size=200)})
TARGET = RNG.integers(0, 5, 200)

WITHOUT_TARGET: dict[str, tuple[Any, Any]] = {
    "network": (lambda: sf.BayesianNetwork([("a", "b")]), TEXT),
    "markov network": (lambda: sf.MarkovNetwork([("a", "b")]), TEXT),
    "gaussian graph": (lambda: sf.GaussianGraph([("u", "v")]), REALS),
    "normal": (sf.Normal, REALS["u"].to_numpy()),
    "multivariate normal": (sf.MultivariateNormal, REALS),
    "poisson": (sf.Poisson, TARGET),
    "categorical": (sf.Categorical, TEXT["a"].to_numpy()),
    "chain": (sf.MarkovChain, [["x", "y", "x"], ["y", "y"]]),
}


@pytest.mark.parametrize("name", WITHOUT_TARGET)
def test_a_second_argument_is_no_weight(name: str) -> None:
    make, data = WITHOUT_TARGET[name]
    plain = make().fit(data)
    with pytest.warns(sf.SufficeWarning, match="y is not used.*sample_weight=") as caught:
        given = make().fit(data, TARGET)
    assert [one.filename for one in caught] == [__file__]
    assert given.report_.weight == plain.report_.weight
    assert given.log_likelihood_ == plain.log_likelihood_
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        assert given.score(data, TARGET) == plain.score(data)
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        make().partial_fit(data, TARGET)
    with pytest.raises(TypeError):
        plain.unlearn(data, TARGET)


def test_stratified_folds_do_not_weigh_the_rows() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    folds = selection.KFold(3)
    net = sf.BayesianNetwork([("a", "b")], prior=1.0)
    plain = selection.cross_val_score(net, TEXT, cv=folds)
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        np.testing.assert_array_equal(selection.cross_val_score(net, TEXT, TARGET, cv=folds), plain)


def test_an_option_that_is_written_to_is_set() -> None:
    model = sf.MarkovNetwork([("a", "b")])
    model.max_iter = 5
    assert model.get_params()["max_iter"] == 5
    assert model.max_iter == 5
    fitted = sf.Normal().fit([1.0, 2.0, 4.0])
    fitted.estimate = "map"
    assert fitted.mean_ == 7 / 3
