"""Fits whose maximum is not attained: weights, errors, texts and laws that agree; and margins that no law has."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import suffice as sf
from certificates import slope_of

PAIRS = [("A", "B"), ("B", "C"), ("C", "A")]
BINARY = {name: [0, 1] for name in "ABC"}
#: Zeros at 000 and 111 only: all pair margins are positive, and there is no maximum.
CORNERS = np.array([0, 3, 2, 4, 5, 1, 6, 0], float).reshape(2, 2, 2)


# -- weights at infinity ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seen", "limit"), [(2, math.inf), (0, -math.inf)])
@pytest.mark.parametrize("shift", [0.0, -1.0, 5.0])
def test_a_feature_at_the_end_of_its_range(seen: int, limit: float, shift: float) -> None:
    network = sf.MarkovNetwork([sf.Feature("X", lambda x: x + shift, name="level")], states={"X": [0, 1, 2]})
    mrf = network.clone().fit({"X": [seen] * 3})
    assert mrf.weights_.tolist() == [limit]
    assert mrf.standard_errors_.tolist() == [math.inf]
    assert mrf.report_.certificate.directions == (f"weight of level -> {limit}",)
    assert mrf.marginal("X").at(X=seen) == 1
    np.testing.assert_array_equal(network.with_weights(mrf.weights_).to_joint().values, mrf.to_joint().values)
    assert "ran to its limit" in str(mrf.summary())


@pytest.mark.parametrize("coding", ["spin", "binary"])
@pytest.mark.parametrize("solver", ["auto", "newton-cg", "lbfgs", "gis"])
def test_fields_of_spins_that_never_turn(coding: Any, solver: Any) -> None:
    low = -1 if coding == "spin" else 0
    edges = [("a", "b"), ("b", "c"), ("c", "a")]
    network = sf.MarkovNetwork.ising(edges, coding=coding, solver=solver)
    one = network.clone().fit({"a": [1], "b": [low], "c": [1]})
    assert one.fields_ == {"a": math.inf, "b": -math.inf, "c": math.inf}
    assert one.map_query() == {"a": 1, "b": low, "c": 1}
    assert one.report_.log_likelihood == pytest.approx(0.0, abs=1e-12)
    assert np.isinf(one.standard_errors_).all()
    again = network.with_weights(one.weights_)
    np.testing.assert_allclose(again.to_joint().values, one.to_joint().values, atol=1e-12)
    some = network.clone().fit({"a": [1] * 5, "b": [1, low, 1, low, 1], "c": [low, 1, 1, low, 1]})
    assert some.fields_["a"] == math.inf
    np.testing.assert_allclose(network.with_weights(some.weights_).to_joint().values, some.to_joint().values, atol=1e-9)
    assert some.marginal("a").at(a=low) == 0


@pytest.mark.parametrize("seed", range(12))
def test_weights_give_the_law_or_say_that_they_do_not(seed: int) -> None:
    """Sparse tables: every weight that a direction names is infinite or NaN; infinite ones rebuild the law."""
    rng = np.random.default_rng(seed)
    states = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}
    terms = [PAIRS, ["A", "B", sf.Feature(("B", "C"), lambda b, c: b * c), sf.Feature([("A", "C")], {(0, 0): 1})]]
    network = sf.MarkovNetwork(terms[seed % 2], states=states)
    counts = rng.poisson(0.5, (2, 3, 2)).astype(float)
    counts[rng.integers(2), rng.integers(3), rng.integers(2)] += 1
    mrf = network.clone().fit(counts, columns=list("ABC"))
    moved = ~np.isfinite(mrf.weights_)
    assert moved.any() == (mrf.report_.certificate.exists is False)
    assert np.isinf(mrf.standard_errors_[moved]).all()
    told = " ".join(mrf.report_.certificate.directions)
    assert all(name in told for name, runs in zip(mrf.weight_names_, moved, strict=True) if runs)
    if np.isnan(mrf.weights_).any():
        with pytest.raises(sf.OptionError, match="run to infinity together"):
            network.with_weights(mrf.weights_)
    else:
        np.testing.assert_allclose(
            network.with_weights(mrf.weights_).to_joint().values, mrf.to_joint().values, atol=1e-9
        )


def test_weights_that_run_together() -> None:
    mrf = sf.MarkovNetwork(PAIRS).fit(CORNERS, columns=list("ABC"))
    together = np.isnan(mrf.weights_)
    assert together.any()
    assert "weights together, none by itself -> inf along" in mrf.report_.certificate.directions[0]
    assert str(mrf.summary()).count("no limit of its own") == together.sum()
    # Six cells are left, and five parameters: nothing is left to test, and `df_` would say 1.
    assert (mrf.df_, mrf.adjusted_df_) == (1, 0)
    assert mrf.p_value_ == 1.0
    assert "df on the face" in str(mrf.summary())


def test_given_weights_at_infinity() -> None:
    """exp(-inf) is 0; plus infinity leaves the largest value alone."""
    network = sf.MarkovNetwork(
        [("A", "B"), sf.Feature("C", lambda c: c)], states={"A": [0, 1], "B": [0, 1], "C": [0, 1, 2]}
    )
    mrf = network.with_weights([-math.inf, 0.0, 1.0, 2.0, math.inf])
    expected = np.zeros((2, 2, 3))
    expected[:, :, 2] = np.array([[0, 1], [math.e, math.e**2]]) / (1 + math.e + math.e**2)
    np.testing.assert_allclose(mrf.to_joint().values, expected, atol=1e-15)
    np.testing.assert_array_equal(mrf.weights_, [-math.inf, 0.0, 1.0, 2.0, math.inf])
    one = sf.MarkovNetwork(["A"], states={"A": [0, 1]}).with_weights([math.inf, 0.0])
    assert one.marginal("A").values.tolist() == [1, 0]
    for weights in ([math.inf, math.inf], [-math.inf, -math.inf]):
        with pytest.raises(sf.OptionError, match="rule out every joint state"):
            sf.MarkovNetwork(["A"], states={"A": [0, 1]}).with_weights(weights)
    with pytest.raises(sf.OptionError, match="rule out every joint state"):
        sf.MarkovNetwork.from_potentials({("A",): [0.0]})


def test_files_keep_limits(tmp_path: Any) -> None:
    mrf = sf.MarkovNetwork(PAIRS).fit(CORNERS, columns=list("ABC"))
    mrf.write(tmp_path / "limits.suffice")
    again = sf.read(tmp_path / "limits.suffice")
    np.testing.assert_array_equal(again.weights_, mrf.weights_)
    np.testing.assert_array_equal(again.standard_errors_, mrf.standard_errors_)


def test_a_score_beyond_the_face_is_minus_infinity() -> None:
    """Joint states that vanish though every margin is positive: also where the joint states are not counted."""
    mrf = sf.MarkovNetwork(PAIRS).fit(CORNERS, columns=list("ABC"))
    assert mrf.score({"A": [0], "B": [0], "C": [0]}) == -math.inf
    assert math.isfinite(mrf.score({"A": [0], "B": [0], "C": [1]}))
    others = {f"v{i}": [0, 1] for i in range(12)}
    wide = sf.MarkovNetwork([*PAIRS, *([name] for name in others)], states={**BINARY, **others})
    rows: dict[str, list[int]] = {name: [] for name in (*BINARY, *others)}
    for cell in np.argwhere(CORNERS):
        for copies in range(int(CORNERS[tuple(cell)])):
            for name, value in zip("ABC", cell, strict=True):
                rows[name].append(int(value))
            for name in others:
                rows[name].append(copies % 2)
    for name in others:
        rows[name][0] = 1
    wide.fit(rows)
    assert wide.report_.certificate.exists is False
    assert wide.score({name: [0] for name in rows}) == -math.inf
    np.testing.assert_allclose(
        wide.score({name: v[:5] for name, v in rows.items()}),
        wide.score_samples({name: v[:5] for name, v in rows.items()}).mean(),
        rtol=1e-12,
    )


# -- margins that no law has -----------------------------------------------------------------------------------------

NEAR = np.array([[0.45, 0.05], [0.05, 0.45]])
#: A and B agree, B and C agree, C and A differ: each pair of margins agrees, and no law has all three.
IMPOSSIBLE = {("A", "B"): NEAR, ("B", "C"): NEAR, ("C", "A"): NEAR[::-1]}


def test_margins_that_belong_to_no_law_are_refused_or_named() -> None:
    with pytest.raises(sf.EstimateError, match=r"No joint distribution has the observed margins"):
        sf.MarkovNetwork(PAIRS).fit(IMPOSSIBLE)
    with pytest.warns(sf.SufficeWarning) as caught:
        mrf = sf.MarkovNetwork(PAIRS, on_inconsistent="warn", max_iter=50).fit(IMPOSSIBLE)
    assert any("No joint " in str(warning.message) for warning in caught)
    certificate = mrf.report_.certificate
    assert certificate.exists is False
    assert certificate.value_gap is None
    assert "No joint " in certificate.directions[0]
    assert not mrf.converged_
    assert not mrf.report_.log_likelihood > 0
    assert any("No joint " in note for note in mrf.report_.warnings)
    # In every joint state one of A = B, B = C, C != A fails at least. The margins let them fail 0.3 times on average,
    # so one of them is off by 0.7 / 3, and a cell of it by half of that.
    assert 0.7 / 6 <= slope_of(certificate) < 0.5


def test_a_log_likelihood_above_zero_is_never_reported() -> None:
    network = sf.MarkovNetwork(PAIRS, check_existence=False, max_iter=300)
    with pytest.raises(sf.EstimateError, match=r"No joint distribution"):
        network.fit(IMPOSSIBLE)
    with pytest.warns(sf.SufficeWarning):
        mrf = sf.MarkovNetwork(PAIRS, check_existence=False, on_inconsistent="warn", max_iter=300).fit(IMPOSSIBLE)
    assert mrf.report_.log_likelihood == -math.inf
    assert mrf.report_.certificate.exists is False


@pytest.mark.parametrize("factor", [1.0, 0.995, 200.0])
def test_totals_that_are_no_number_of_rows_are_noted(factor: float) -> None:
    shares = np.array([[0.25, 0.125], [0.375, 0.25]]) * factor
    domain = sf.Domain([sf.Variable.discrete(name, [0, 1]) for name in "AB"])
    for data in ({("A", "B"): shares}, sf.Table(domain, shares)):
        notes = " ".join(sf.MarkovNetwork([("A", "B")]).fit(data).report_.warnings)
        expected = {1.0: "to 1: shares of an unknown number", 0.995: "to 0.995, neither 1 nor", 200.0: ""}[factor]
        assert expected in notes
        assert bool(notes) == bool(expected)


def test_a_table_of_one_row_is_a_row() -> None:
    counts = np.zeros((2, 2, 2))
    counts[1, 0, 1] = 1
    assert not any("sum" in n for n in sf.MarkovNetwork(PAIRS).fit(counts, columns=list("ABC")).report_.warnings)


def test_margins_must_hold_every_term() -> None:
    pair = np.ones((2, 2))
    for margins, message in (
        ({("A", "B"): pair, ("B", "C"): pair}, r"No margin holds \('C', 'A'\)"),
        ({("A", "Bx"): pair}, r"\('A', 'Bx'\) names 'Bx', which is no variable"),
        ({("A", "B"): pair, ("B", "C"): np.ones((3, 2)), ("C", "A"): pair}, "give 'B' 2 and 3 states"),
    ):
        with pytest.raises(sf.DataError, match=message):
            sf.MarkovNetwork(PAIRS).fit(margins)


def test_all_zero_patterns_of_three_pairs_agree_with_their_weights() -> None:
    """Every third support of a 2 x 2 x 2 table: the weights give the law of the fit wherever weights can say it."""
    network = sf.MarkovNetwork(PAIRS, states=BINARY)
    for pattern in list(itertools.product([0.0, 1.0], repeat=8))[::3]:
        counts = np.array(pattern).reshape(2, 2, 2) * [2.0, 3.0]
        if not 0 < np.count_nonzero(counts) < 8:
            continue
        mrf = network.clone().fit(counts, columns=list("ABC"))
        if not np.isnan(mrf.weights_).any():
            again = network.with_weights(mrf.weights_)
            np.testing.assert_allclose(again.to_joint().values, mrf.to_joint().values, atol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "pseudolikelihood"])
def test_a_limit_of_memory_may_be_a_text(solver: Any) -> None:
    rows = {"a": [0, 1, 1, 0, 1], "b": [1, 0, 1, 0, 1]}
    fitted = sf.MarkovNetwork([("a", "b")], solver=solver, memory_limit="1MB").fit(rows)
    expected = sf.MarkovNetwork([("a", "b")], solver=solver, memory_limit=1_000_000).fit(rows)
    np.testing.assert_array_equal(fitted.weights_, expected.weights_)
    with pytest.raises(sf.OptionError, match="memory_limit is 'lots'"):
        sf.MarkovNetwork([("a", "b")], solver=solver, memory_limit="lots").fit(rows)
    with pytest.raises(sf.SizeError):
        sf.MarkovNetwork([("a", "b")], memory_limit="1B").fit(rows)
