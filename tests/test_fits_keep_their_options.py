"""A fit that is done is judged by the options that it had, also after it was copied, sent or read from a file."""

import copy
import inspect
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

HIDDEN = np.random.default_rng(0).integers(0, 2, 300)
SHOWN = {
    f"V{k}": np.where(np.random.default_rng(k + 1).random(300) < np.where(HIDDEN == 1, 0.8, 0.2), "y", "n")
    for k in range(4)
}
COUNTS = [1, 2, 3, 0, 5]


def sent(model: Any, folder: Path) -> list[Any]:
    """The model by every way out of the process and back."""
    model.write(folder / "model.json")
    model.write(folder / "model.suffice")
    files = [sf.read(folder / "model.json"), sf.read(folder / "model.suffice")]
    return [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), *files]


def test_a_network_learned_by_em_stays_one(tmp_path: Path) -> None:
    net = sf.BayesianNetwork([("H", name) for name in SHOWN], hidden={"H": 2}, prior=1.0).fit(SHOWN)
    errors = net.node("H").standard_errors_.values
    for twin in sent(net, tmp_path):
        np.testing.assert_allclose(twin.node("H").standard_errors_.values, errors, rtol=1e-9)
        with pytest.raises(sf.EstimateError, match="no closed form"):
            twin.posterior_  # noqa: B018


@pytest.mark.parametrize(
    "law",
    [
        sf.Poisson(prior=sf.Gamma(2, 1)),
        sf.Geometric(prior=sf.Beta(2, 1)),
        sf.Normal(prior=sf.NormalInverseGamma(alpha=2, beta=1, gamma=1, delta=0)),
    ],
)
def test_options_of_the_next_fit_do_not_touch_this_one(law: Any, tmp_path: Path) -> None:
    fitted = law.clone().fit(COUNTS)
    before = fitted.matched_statistics()
    for twin in sent(fitted, tmp_path):
        twin.set_params(prior=None)
        after = twin.matched_statistics()
        assert (after is None) == (before is None)
        if before is not None:
            np.testing.assert_allclose(after.observed, before.observed, rtol=1e-12)
        assert twin.report_.to_html()


def test_a_chain_is_asked_by_its_own_order() -> None:
    sequences = ["aab", "aba", "bba"]
    chain = sf.MarkovChain(order=1).fit(sequences)
    score = chain.score(sequences)
    assert chain.set_params(order=2).score(sequences) == score


def test_rows_of_one_value_have_a_page() -> None:
    for law in (sf.Geometric().fit([1, 2, 3]), sf.Exponential().fit(np.random.default_rng(0).exponential(3, 300))):
        assert "<svg" in law.report_.to_html()


ROWS = {"a": [0, 0, 1, 1, 0, 1], "b": [0, 1, 1, 1, 0, 0]}


@pytest.mark.parametrize(
    ("model", "data", "later"),
    [
        (sf.MarkovNetwork([("a", "b")], states={"a": [0, 1]}), ROWS, {"states": {"a": [1, 0], "c": ["x", "y"]}}),
        (sf.MarkovNetwork([("a", "b"), ("b", "H")], hidden={"H": 2}), ROWS, {"hidden": None}),
        (sf.BayesianNetwork([("a", "b")], prior=1.0), ROWS, {"states": {"a": ["x", "y", "z"]}}),
        (sf.GaussianGraph([("a", "b")], mean="zero"), ROWS, {"nodes": ["b", "a", "c"]}),
        (sf.MarkovChain(order=1), ["aab", "aba", "bba"], {"order": 3}),
        (sf.HiddenMarkovModel(2, sf.Categorical(), tolerance=0.1), [[0, 1, 0, 1], [1, 1, 0]], {"states": 3}),
        (sf.Categorical(), ["x", "y", "x"], {"states": ["p", "q"]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_file_describes_the_fit_whatever_was_set_since(
    model: Any, data: Any, later: dict[str, Any], tmp_path: Path
) -> None:
    fitted = model.clone().fit(data)
    fitted.write(tmp_path / "before.json")
    before = sf.read(tmp_path / "before.json")
    fitted.set_params(**later).write(tmp_path / "after.json")
    after = sf.read(tmp_path / "after.json")
    assert after.get_params(deep=False).keys() == before.get_params(deep=False).keys()
    assert repr(after) == repr(before)
    assert after.report_ == fitted.report_
    assert after.score(data) == before.score(data)
    # What was set is that of the next fit.
    kept = {name: fitted.get_params(deep=False)[name] for name in later}
    assert repr(kept).replace("(", "[").replace(")", "]") == repr(later)


@pytest.mark.parametrize(
    "kind",
    [
        sf.BayesianNetwork,
        sf.MarkovNetwork,
        sf.GaussianGraph,
        sf.HiddenMarkovModel,
        sf.ChainCRF,
        sf.GraphCRF,
        sf.GLM,
        sf.Gamma,
        sf.Beta,
    ],
)
def test_options_of_a_run_are_spelled_out(kind: Any) -> None:
    names = list(inspect.signature(kind).parameters)
    assert {"max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint"} <= set(names)
    documented = re.findall("^        ([a-z_]+): ", kind.__doc__, flags=re.MULTILINE)
    assert sorted(documented) == sorted(names)
    first = {"structure": [("a", "b")], "states": 2}
    given = {name: value for name, value in first.items() if name == names[0]}
    given |= {"emission": "normal"} if kind is sf.HiddenMarkovModel else {}
    model = kind(**given, max_seconds=7.0)
    assert list(model.get_params(deep=False)) == names
    assert model.clone().get_params()["max_seconds"] == 7.0
    assert model.set_params(max_seconds=None).get_params()["max_seconds"] is None
    assert "max_seconds" not in repr(model)
    with pytest.raises(TypeError, match="has no option 'patient'"):
        kind(**given, patient=True)
