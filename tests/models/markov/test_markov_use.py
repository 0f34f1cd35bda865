"""Markov networks in use: scores of other data, copies, checkpoints, interrupts, and errors that say what to do."""

import copy
import math
import pickle
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from certificates import slope_of
from suffice.kernels.junction_tree import calibrate
from suffice.models.markov import certificate as markov_certificate
from suffice.models.markov.contingency import read_cells
from suffice.models.markov.feature_spread import variances

PAIRS = [("A", "B"), ("B", "C"), ("C", "A")]
ROWS = {"A": [0, 1, 1, 1, 0, 0, 1], "B": [0, 0, 1, 1, 1, 0, 1], "C": [0, 1, 1, 0, 1, 0, 0]}


def both(a: Any, b: Any) -> Any:
    """A feature that can be pickled."""
    return a * b


# -- marginals -------------------------------------------------------------------------------------------------------


def test_many_marginals_are_read_from_one_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    mrf, seen = sf.MarkovNetwork([*PAIRS, ("C", "D")]).fit({**ROWS, "D": [1, 0, 1, 0, 1, 1, 0]}), []

    def spy(*given: Any) -> Any:
        seen.append(given)
        return calibrate(*given)

    monkeypatch.setattr("suffice.engines.junction_tree.calibrate", spy)
    joint = mrf.to_joint()
    for edge in (*PAIRS, ("C", "D"), ("D", "A")):
        np.testing.assert_allclose(mrf.marginal(edge).values, joint.marginal(edge).values, rtol=1e-12)
    assert len(seen) == 1
    mrf.query("A", {"D": 1})
    assert len(seen) == 2


# -- scores ----------------------------------------------------------------------------------------------------------


def test_a_score_does_not_depend_on_the_order_of_categories() -> None:
    words = pd.DataFrame({"A": ["low", "mid", "high", "low", "mid", "low", "high"], "B": list("uvuuuvv")})
    for order in (["low", "mid", "high"], ["high", "mid", "low"], ["mid", "high", "low", "never"]):
        other = words.assign(A=words.A.astype(pd.CategoricalDtype(order)))
        for fitted, scored in ((words, other), (other, words), (other, other)):
            if len(order) == 4 and fitted is words:
                continue
            mrf = sf.MarkovNetwork([("A",), ("B",)]).fit(fitted)
            expected = np.log(words.A.map(words.A.value_counts() / 7)).mean()
            expected += np.log(words.B.map(words.B.value_counts() / 7)).mean()
            assert mrf.score(scored) == pytest.approx(expected, rel=1e-12)
            assert mrf.score(sf.summarize(sf.MarkovNetwork([("A",), ("B",)]), scored)) == pytest.approx(expected)
            assert mrf.score_samples(scored).mean() == pytest.approx(expected, rel=1e-12)


def test_a_score_of_a_table_with_states_in_another_order() -> None:
    counts = np.arange(1.0, 9.0).reshape(2, 2, 2)
    turned = sf.Domain([sf.Variable.discrete("A", ["y", "x"]), *(sf.Variable.discrete(n, [0, 1]) for n in "BC")])
    straight = sf.Domain([sf.Variable.discrete("A", ["x", "y"]), *(sf.Variable.discrete(n, [0, 1]) for n in "BC")])
    mrf = sf.MarkovNetwork(PAIRS).fit(sf.Table(straight, counts))
    assert mrf.score(sf.Table(turned, counts[::-1])) == pytest.approx(mrf.report_.log_likelihood / 36, rel=1e-12)


def test_states_that_a_score_does_not_know() -> None:
    mrf = sf.MarkovNetwork(PAIRS).fit(ROWS)
    with pytest.raises(sf.UnknownStateError, match=r"'A' holds 7 \(int\).*not one of its 2 states: 0, 1"):
        mrf.score({**ROWS, "A": [0, 1, 1, 7, 0, 0, 1]})
    with pytest.raises(sf.UnknownStateError, match=r"holds True \(bool\)"):
        mrf.score({**ROWS, "A": [True] * 7})
    other = sf.summarize(sf.MarkovNetwork(PAIRS), {**ROWS, "A": [0, 1, 1, 7, 0, 0, 1]})
    with pytest.raises(sf.UnknownStateError, match="has no state 7"):
        mrf.score(other)
    floats = {name: np.array(values, float) for name, values in ROWS.items()}
    assert mrf.score(floats) == mrf.score(ROWS)
    declared = sf.MarkovNetwork(PAIRS, states={name: [0, 1] for name in "ABC"}).fit(floats)
    np.testing.assert_array_equal(declared.weights_, mrf.weights_)
    gap = {**ROWS, "A": [None, *ROWS["A"][1:]]}
    assert mrf.score(gap) == pytest.approx(float(mrf.score_samples(gap).mean()), abs=1e-14)
    whole = sf.MarkovNetwork(PAIRS, missing="raise").fit(ROWS)
    with pytest.raises(sf.MissingValueError, match="score_samples sums missing values out"):
        whole.score(gap)


# -- copies ----------------------------------------------------------------------------------------------------------


def test_networks_with_functions_can_be_pickled_once_fitted() -> None:
    terms = ["A", sf.Feature([("A", "B"), ("B", "C")], lambda a, b: a == b), sf.Feature(("A", "C"), both)]
    terms.append(sf.Feature([("A",), ("B",)], [lambda a: 2.0 * a, lambda b: -b]))
    mrf = sf.MarkovNetwork(terms).fit(ROWS)
    again = pickle.loads(pickle.dumps(mrf))
    np.testing.assert_array_equal(again.weights_, mrf.weights_)
    assert again.score(ROWS) == mrf.score(ROWS)
    np.testing.assert_array_equal(again.fit(ROWS).weights_, mrf.weights_)
    with pytest.raises(sf.OptionError, match="states of the fit were pickled"):
        again.fit({**ROWS, "A": [0, 1, 2, 0, 1, 2, 0]})
    for other in (copy.copy(mrf), copy.deepcopy(mrf), mrf.clone()):
        other.fit({**ROWS, "A": [0, 1, 2, 0, 1, 2, 0]})  # Functions are shared by copies.
        assert other.states("A") == (0, 1, 2)
    with pytest.raises(sf.OptionError, match=r"cannot be pickled .*module, or fit first"):
        pickle.dumps(sf.MarkovNetwork([sf.Feature("A", lambda a: a)]))
    whole = pickle.loads(pickle.dumps(sf.MarkovNetwork([sf.Feature(("A", "B"), both)])))
    assert whole.fit(ROWS).converged_


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, b: 1 / a, r"'odd' on 'A', 'B' raised ZeroDivisionError for the states 0, 0: division by zero"),
        (lambda a: a, "raised TypeError for the states 0, 0: .*called with 2 labels"),
        (lambda a, b: "1", "gave '1' for the states 0, 0"),
        (lambda a, b: math.nan if b else 0.0, "gave nan for the states 0, 1, which is not finite"),
        (lambda a, b: None, "gave None for the states 0, 0"),
        (lambda a, b: np.array([1.0]), r"gave array\(\[1.\]\) for the states"),
        (lambda a, b: 1j, "gave 1j for the states"),
    ],
)
def test_functions_that_fail_are_named_with_the_states(function: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.MarkovNetwork([sf.Feature(("A", "B"), function, name="odd")]).fit(ROWS)


# -- long fits -------------------------------------------------------------------------------------------------------


def test_a_checkpoint_of_another_solver_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "fit.suffice"
    solvers = ("ipf", "gis", "lbfgs", "newton", "ascent-potentials")
    for first in solvers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.ConvergenceWarning)
            sf.MarkovNetwork(PAIRS, solver=first, max_iter=1, checkpoint=path).fit(ROWS)  # type: ignore[arg-type]
        for second in solvers:
            if second != first:
                with pytest.raises(sf.OptionError, match="another solver"):
                    sf.MarkovNetwork(PAIRS, solver=second, checkpoint=path).fit(ROWS)  # type: ignore[arg-type]
        path.unlink()
    # Two features with the same mean, 4 / 7.
    values = ({1: 1.0}, {0: 4 / 3})
    one, two = (sf.MarkovNetwork([sf.Feature("A", v)], solver="lbfgs", checkpoint=path) for v in values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.ConvergenceWarning)
        one.set_params(max_iter=1).fit(ROWS)
    with pytest.raises(sf.OptionError, match="another fit"):
        two.fit(ROWS)


def test_ctrl_c_in_the_certificate_keeps_the_fit(monkeypatch: Any) -> None:
    whole = sf.MarkovNetwork(PAIRS).fit(ROWS)

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(markov_certificate, "_decrement", interrupted)
    mrf = sf.MarkovNetwork(PAIRS).fit(ROWS)
    np.testing.assert_array_equal(mrf.weights_, whole.weights_)
    with pytest.warns(sf.ConvergenceWarning, match="no gap was measured"):
        assert mrf.report_.certificate.value_gap is None
    assert not mrf.converged_
    assert "interrupted" in str(mrf.report_)


def test_the_certificate_ends_with_the_time(monkeypatch: Any) -> None:
    """The clock jumps by an hour when the solver is done: no value gap, all else as it was."""
    real = time.monotonic
    hours: list[int] = []
    monkeypatch.setattr("suffice.models.markov.certificate.time.monotonic", lambda: real() + 3600 * len(hours))

    def late(*given: Any) -> Any:
        hours.append(1)
        return variances(*given)

    monkeypatch.setattr(markov_certificate, "variances", late)
    mrf = sf.MarkovNetwork(PAIRS, max_seconds=1000).fit(ROWS)
    assert mrf.converged_
    assert mrf.report_.certificate.value_gap is None
    assert slope_of(mrf.report_.certificate) < 1e-9


# -- what the data are -----------------------------------------------------------------------------------------------


def test_counts_of_one_variable_and_cross_tables() -> None:
    frame = pd.DataFrame(ROWS)
    single = sf.MarkovNetwork(["A"]).fit(frame["A"].value_counts())
    np.testing.assert_allclose(single.marginal("A").values, [3 / 7, 4 / 7], rtol=1e-12)
    cross = pd.crosstab(frame["B"], frame["A"])
    pair = sf.MarkovNetwork([("A", "B")]).fit(cross)
    np.testing.assert_allclose(pair.marginal(("B", "A")).values, cross.to_numpy() / 7, rtol=1e-12)
    assert pair.report_.weight == 7
    three = sf.MarkovNetwork([("A", "B", "C")]).fit(pd.crosstab([frame["A"], frame["C"]], frame["B"]))
    np.testing.assert_allclose(three.marginal("C").values, [4 / 7, 3 / 7], rtol=1e-12)
    words = pd.crosstab(frame["B"].map({0: "no", 1: "yes"}), frame["A"])
    assert sf.MarkovNetwork([("A", "B")]).fit(words).states("B") == ("no", "yes")
    # A frame of rows whose index has a name is still rows, and a series of a variable is its column.
    rows = frame.rename_axis(index="person")
    assert read_cells(rows, None, {}, ["A", "B"]) is None
    assert read_cells(frame["A"].rename_axis("B"), None, {}, ["A", "B"]) is None
    assert sf.MarkovNetwork([("A", "B")]).fit(rows).report_.rows == 7


def test_a_bayesian_network_without_tables() -> None:
    net = sf.BayesianNetwork([("A", "B")])
    with pytest.raises(sf.NotFittedError, match="Fit it first"):
        sf.MarkovNetwork.from_bayesian_network(net)
    fitted = net.fit({"A": [0, 1, 1], "B": [0, 1, 0]})
    joint = sf.MarkovNetwork.from_bayesian_network(fitted).marginal(("A", "B")).values
    np.testing.assert_allclose(joint, [[1 / 3, 0], [1 / 3, 1 / 3]], atol=1e-12)


def test_rows_of_weight_zero_still_show_their_states() -> None:
    """As everywhere: what a row holds is a state, whatever it weighs."""
    mrf = sf.MarkovNetwork([("A", "B")]).fit({"A": [0, 1, 2], "B": [0, 1, 0]}, sample_weight=[1, 1, 0])
    assert mrf.states("A") == (0, 1, 2)
    assert mrf.marginal("A").at(A=2) == 0


def test_a_network_without_terms_has_width_zero() -> None:
    mrf = sf.MarkovNetwork([], states={"A": [0, 1]}).fit({"A": [0, 1]})
    assert "width 0" in str(mrf.report_)


# -- Potts -----------------------------------------------------------------------------------------------------------


def test_couplings_and_fields_of_a_tied_potts_model() -> None:
    edges = [(0, 1), (1, 2), (2, 0)]
    rng = np.random.default_rng(0)
    mrf = sf.MarkovNetwork.potts(edges, ["r", "g", "b"], tied=True).fit(
        {n: rng.choice(list("rgb"), 60) for n in range(3)}
    )
    weight = mrf.weights_[-1]
    assert mrf.couplings_ == dict.fromkeys(edges, weight)
    assert mrf.fields_[1] == dict(zip("rgb", mrf.weights_[3:6].tolist(), strict=True))
    free = sf.MarkovNetwork.potts(edges, 3, fields=False).with_weights([1.0, 2.0, 3.0])
    with pytest.raises(sf.OptionError, match="no field"):
        free.fields_  # noqa: B018


def test_given_weights_take_the_states_of_the_fit() -> None:
    fitted = sf.MarkovNetwork([("a", "b")]).fit({"a": [0, 1, 1], "b": [0, 1, 0]})
    given = fitted.with_weights(fitted.weights_)
    np.testing.assert_allclose(given.to_joint().values, [[1 / 3, 0], [1 / 3, 1 / 3]], atol=1e-12)
    other = fitted.with_weights([0.0, np.log(2.0), 0.0, 0.0])
    np.testing.assert_allclose(other.to_joint().values, np.array([[1, 2], [1, 1]]) / 5, atol=1e-12)
    assert not hasattr(other, "report_")
    with pytest.raises(sf.OptionError, match="declare 'a', 'b' in states="):
        sf.MarkovNetwork([("a", "b")]).with_weights(np.zeros(4))
