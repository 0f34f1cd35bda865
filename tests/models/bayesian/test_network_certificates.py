"""What the certificate of a network says: events never seen, likelihoods without bound, estimates under a prior."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.nist.data import REGRESSIONS
from numpy.typing import NDArray
from scipy.optimize import minimize

import exact_squares as exact
import suffice as sf
from random_networks import certificate_at
from suffice.records import replace as replaced

FILIP = next(problem for problem in REGRESSIONS if problem.name == "Filip")
ROWS = {**FILIP.columns, "y": FILIP.y}
STRUCTURE = {"y": list(FILIP.columns)}


def filip_by(way: str, folder: Path) -> sf.BayesianNetwork:
    """The network of ten powers of one column, learned at once, in parts, from a summary or read from a file."""
    net = sf.BayesianNetwork(STRUCTURE)
    if way == "parts":
        for part in np.array_split(np.arange(82), 3):
            net.partial_fit({name: column[part] for name, column in ROWS.items()})
        return net
    net.fit(ROWS)
    if way == "summary":
        return sf.BayesianNetwork(STRUCTURE).fit(net.statistics_)
    if way == "file":
        net.write(folder / "filip.json")
        found: sf.BayesianNetwork = sf.read(folder / "filip.json")
        return found
    return net


@pytest.mark.parametrize("way", ["rows", "parts", "summary", "file"])
def test_columns_that_nearly_depend_on_each_other_are_fitted_to_the_optimum(way: str, tmp_path: Path) -> None:
    net = filip_by(way, tmp_path)
    node, found = net.node("y"), net.report_.certificate
    left = exact.squares(FILIP.design, FILIP.y, exact.solution(FILIP.design, FILIP.y))
    assert node.variance_ == pytest.approx(float(left) / 82, rel=1e-12)
    assert found.bound
    assert found.exists is True
    assert found.value_gap is not None
    assert found.value_gap < 1e-12
    assert net.report_.warnings == ()


@pytest.mark.parametrize("size", [1e-12, 1e-9, 1e-6])
def test_tampered_weights_are_no_nearer_than_the_bound_says(size: float) -> None:
    """Weights with so much relative noise, the variance at its best for them: the loss in rational arithmetic."""
    net = sf.BayesianNetwork(STRUCTURE).fit(ROWS)
    best = exact.squares(FILIP.design, FILIP.y, exact.solution(FILIP.design, FILIP.y))
    rng = np.random.default_rng(5)
    for _ in range(5):
        node = net.fitted_.nodes["y"]
        weights = node.weights * (1 + size * rng.normal(size=node.weights.shape))
        here = exact.squares(FILIP.design, FILIP.y, exact.rational(weights[0]))
        found = certificate_at(net, y=replace(node, weights=weights, variance=np.array([float(here) / 82])))
        loss = 0.5 * np.log(float(here / best))
        assert found.value_gap is None or loss - 1e-12 <= found.value_gap <= 1.01 * loss + 1e-12
        assert found.value_gap is not None or loss > 5


def test_a_variance_that_was_tampered_with_is_lost_in_full() -> None:
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=40), "y": rng.normal(size=40)}
    for prior in (None, sf.LinearGaussianPrior(2.0, 1.0)):
        net = sf.BayesianNetwork([("x", "y")], prior=prior).fit(rows)
        before, nodes = net.report_.objective, net.fitted_.nodes
        moved = {**nodes, "y": replace(nodes["y"], variance=nodes["y"].variance * 1.3)}
        after = sum(one.log_likelihood(net.statistics_) + one.log_prior() for one in moved.values())
        assert certificate_at(net, moved).value_gap == pytest.approx((before - after) / 40, rel=1e-10)


# -- no bound --------------------------------------------------------------------------------------------------------


def test_a_likelihood_without_bound_has_no_bound() -> None:
    """As many rows as weights, or fewer: whatever is left of the squares is rounding."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        n, p = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        rows = {name: rng.normal(size=n) * 10.0 ** rng.integers(-3, 4) for name in [*(f"x{i}" for i in range(p)), "y"]}
        found = sf.BayesianNetwork({"y": [f"x{i}" for i in range(p)]}).fit(rows).report_.certificate
        if n <= p + 1:
            assert found.exists is False
            assert any("variance of 'y' -> 0" in text for text in found.directions)
            assert (found.value_gap, found.bound) == (None, False)
        elif n > 1:
            assert found.exists is True
            assert found.value_gap is not None


def test_a_perfect_fit_keeps_its_coefficients() -> None:
    wampler = next(problem for problem in REGRESSIONS if problem.name == "Wampler1")
    net = sf.BayesianNetwork({"y": list(wampler.columns)}).fit({**wampler.columns, "y": wampler.y})
    np.testing.assert_allclose(net.node("y").weights_, np.ones(6), rtol=1e-13)
    found = net.report_.certificate
    assert (found.exists, found.value_gap) == (False, None)
    assert any("explain it without error" in text for text in net.report_.warnings)


def residual(y: NDArray[np.float64], *columns: NDArray[np.float64]) -> float:
    """The mean square that least squares leave, of columns that are not nearly dependent."""
    design = np.column_stack([np.ones(len(y)), *columns])
    return float(np.mean((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2))


@pytest.mark.filterwarnings("ignore:The fit has not converged")  # Weights in float64 have no more digits.
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("apart", [1e-14, 1e-15])
def test_a_column_that_was_left_out_may_explain_something(seed: int, apart: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=60)
    z = x + apart * rng.normal(size=60)
    apart_by = (z - x) / apart
    y = x + apart_by + rng.normal(size=60)
    net = sf.BayesianNetwork({"y": ["x", "z"]}).fit({"x": x, "z": z, "y": y})
    best = -30 * sum(np.log(2 * np.pi * v) + 1 for v in (residual(y, x, apart_by), x.var(), z.var()))
    found, short = net.report_.certificate, (best - net.report_.log_likelihood) / 60
    assert short < 1e-6 or (found.value_gap, net.converged_) == (None, False)
    if short > 1e-2:
        assert found.exists is None
        assert any("so nearly that their digits are lost" in text for text in net.report_.warnings)


def test_columns_of_whole_numbers_depend_beyond_doubt() -> None:
    rng = np.random.default_rng(3)
    x, z, y = rng.integers(-9, 9, 60) * 1.0, rng.integers(-9, 9, 60) * 1.0, rng.normal(size=60)
    whole = dict.fromkeys("xzw", "real")
    found = sf.BayesianNetwork({"y": ["x", "z", "w"]}, states=whole).fit({"x": x, "z": z, "w": 3 * x - z + 7, "y": y})
    proof = found.report_.certificate
    assert (proof.exists, found.converged_) == (True, True)
    assert proof.value_gap is not None
    assert proof.value_gap < 1e-10


@pytest.mark.filterwarnings("ignore:The fit has not converged")  # Weights in float64 have no more digits.
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("offset", [1e9, 1e10, 1e11])
def test_a_variance_among_large_offsets_is_not_nothing(offset: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = offset + rng.normal(size=60)
    z = x + 1e-3 * rng.normal(size=60)
    y = (z - x) * 1e3 + rng.normal(size=60)
    net = sf.BayesianNetwork({"y": ["x", "z"]}).fit({"x": x, "z": z, "y": y})
    assert net.report_.certificate.exists is not False
    assert net.node("y").variance_ == pytest.approx(residual(y, x - x[0], (z - x) * 1e3), rel=1e-3)


@pytest.mark.parametrize("offset", [1e12, 1e13])
def test_sums_without_digits_for_a_variance_are_refused(offset: float) -> None:
    rng = np.random.default_rng(0)
    x = offset + rng.normal(size=60)
    z = x + np.where(rng.random(60) < 0.5, 1 / 64, 0.0)
    y = (z - x) * 64e3 + rng.normal(size=60)
    with pytest.raises(sf.EstimateError, match="no digits left for its variance"):
        sf.BayesianNetwork({"y": ["x", "z"]}).fit({"x": x, "z": z, "y": y})


def test_one_column_far_from_zero_varies() -> None:
    y = 1e15 + np.round(4 * np.random.default_rng(0).normal(size=60))
    net = sf.BayesianNetwork({"y": []}, states={"y": "real"}).fit({"y": y})
    assert net.report_.certificate.exists is not False
    assert net.node("y").variance_ == pytest.approx((y - 1e15).var(), rel=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_many_columns_that_are_nearly_dependent(seed: int) -> None:
    """Sums in float64 drop a column here that is not dependent."""
    rng = np.random.default_rng(seed)
    rows = {f"x{i}": rng.normal(size=200) for i in range(17)}
    z = rows["x0"] + 1e-7 * rng.normal(size=200)
    y = (z - rows["x0"]) * 1e7 + rows["x1"] + rng.normal(size=200)
    net = sf.BayesianNetwork({"y": [*rows, "z"]}).fit({**rows, "z": z, "y": y})
    assert net.node("y").variance_ > 1.5 * residual(y, *rows.values(), (z - rows["x0"]) * 1e7)
    found = net.report_.certificate
    assert (found.exists, found.value_gap, net.converged_) == (None, None, False)
    assert any("so nearly that their digits are lost" in text for text in net.report_.warnings)
    assert not any("The rows do not determine" in text for text in net.report_.warnings)


def test_sums_that_are_good_to_float64_do_not_decide_about_a_perfect_fit() -> None:
    """Beside many other columns, what a regression leaves of a column may be less than the rounding of their sums."""
    rng = np.random.default_rng(4)
    rows = {f"x{i}": rng.normal(size=500) for i in range(20)}
    rows["y"] = rows["x0"] - 2 * rows["x1"] + 1e-9 * rng.normal(size=500)
    net = sf.BayesianNetwork({"y": ["x0", "x1"], **{f"x{i}": [] for i in range(20)}}).fit(rows)
    found = net.report_.certificate
    assert (found.exists, found.value_gap) == (None, None)
    assert any("cannot be told from rounding" in text for text in net.report_.warnings)
    alone = sf.BayesianNetwork({"y": ["x0", "x1"]}).fit({name: rows[name] for name in ("x0", "x1", "y")})
    assert alone.report_.certificate.exists is True
    assert alone.node("y").variance_ == pytest.approx(1e-18, rel=0.3)


def test_expected_moments_of_dependent_columns_have_the_solution_of_least_norm() -> None:
    """EM expects moments in float64, in which columns that depend on each other seem to differ by rounding."""
    rng = np.random.default_rng(2)
    x, z = rng.normal(size=(2, 60))
    y = np.where(rng.random(60) < 0.2, np.nan, x - z + 0.3 * rng.normal(size=60))
    plain = sf.BayesianNetwork({"y": ["x", "z"]}).fit({"x": x, "z": z, "y": y}).node("y")
    net = sf.BayesianNetwork({"x": [], "z": [], "c": ["x", "z"], "y": ["x", "z", "c"]})
    node = net.fit({"x": x, "z": z, "c": x + z, "y": y}).node("y")
    assert net.converged_
    intercept, a, b = plain.weights_
    share = (a + b) / 3  # The least norm of (a - s, b - s, s).
    np.testing.assert_allclose(node.weights_, [intercept, a - share, b - share, share], atol=1e-5)


# -- events never seen -----------------------------------------------------------------------------------------------

SEEN = {"a": ["x", "x", "y", "y"], "b": ["u", "v", "u", "u"]}


def certificate(structure: Any, rows: Any, **options: Any) -> sf.Certificate:
    return sf.BayesianNetwork(structure, **options).fit(rows).report_.certificate


def test_an_event_never_seen_has_no_maximum_in_any_model() -> None:
    found = certificate([("a", "b")], SEEN)
    assert found.exists is False
    assert found.directions == ("log P(b=v | a=y) -> -inf (never seen)",)
    # The law is the limit: nothing is lost.
    assert found.bound
    assert found.value_gap == pytest.approx(0.0, abs=1e-14)
    assert sf.MarkovNetwork([("a", "b")]).fit(SEEN).report_.certificate.exists is False
    assert sf.Categorical(states=["u", "v"]).fit(["u", "u"]).report_.certificate.exists is False
    assert certificate({"a": []}, {"a": ["x", "y"]}).exists is True
    assert sf.BayesianNetwork([("a", "b")]).fit(SEEN).converged_


def test_a_declared_state_that_never_occurs_is_an_event_never_seen() -> None:
    found = certificate({"a": []}, {"a": ["x", "y"]}, states={"a": ["x", "y", "z"]})
    assert found.exists is False
    assert found.directions == ("log P(a=z) -> -inf (never seen)",)
    # A node of one state has nothing to learn.
    assert certificate({"a": []}, {"a": ["x", "x"]}).exists is True


@pytest.mark.parametrize(
    ("options", "exists"),
    [
        *(({"prior": 1.0}, True), ({"prior": "bdeu"}, True), ({"prior": 2.0, "estimate": "map"}, True)),
        *(({"prior": 1.0, "estimate": "map"}, False), ({"prior": {"a": 1.0}}, False), ({"prior": {"b": 1.0}}, True)),
    ],
)
def test_a_prior_that_gives_weight_to_every_event_has_a_maximum(options: dict[str, Any], exists: bool) -> None:
    found = certificate([("a", "b")], SEEN, **options)
    assert found.exists is exists
    assert (found.directions == ()) is exists
    assert found.bound
    assert found.value_gap == pytest.approx(0.0, abs=1e-14)


def test_zeros_that_are_given_are_no_edge() -> None:
    """A fixed table is not learned, whatever it holds."""
    fixed = {"b": [[0.5, 0.5], [1.0, 0.0]]}
    found = certificate([("a", "b")], SEEN, fixed=fixed)
    assert (found.exists, found.directions) == (True, ())


def test_joint_states_of_parents_that_never_occur_leave_the_maximum_where_it_is() -> None:
    """Every row of probabilities there is as good as any other: the maximum is attained, and a warning says so."""
    rows = {"a": [0, 0, 1, 1], "b": [0, 0, 1, 1], "c": [0, 1, 0, 1]}
    net = sf.BayesianNetwork({"a": [], "b": [], "c": ["a", "b"]}).fit(rows)
    assert net.report_.certificate.exists is True
    assert any("2 parent configurations never occur" in text for text in net.report_.warnings)
    assert certificate({"a": [], "b": ["a"], "c": ["a", "b"]}, rows).exists is False


def test_many_events_are_told_in_one_line() -> None:
    rng = np.random.default_rng(1)
    rows = {"a": rng.integers(0, 40, 300), "b": rng.integers(0, 50, 300), "c": rng.integers(0, 3, 300)}
    net = sf.BayesianNetwork({"a": [], "c": [], "b": ["a", "c"]}).fit(rows)
    seen = {(a, c) for a, c in zip(rows["a"], rows["c"], strict=True)}
    events = {tuple(row) for row in zip(rows["a"], rows["c"], rows["b"], strict=True)}
    number = len(seen) * 50 - len(events)
    (text,) = net.report_.certificate.directions
    assert text.endswith(f"and {number - 1:,} more of 'b' -> -inf (never seen)")
    assert len(net.report_.lines()) < 15


def test_a_table_too_large_for_all_its_rows_names_what_was_never_seen() -> None:
    rng = np.random.default_rng(2)
    rows = {f"x{i}": rng.integers(0, 30, 60) for i in range(6)} | {"y": rng.integers(0, 2, 60)}
    net = sf.BayesianNetwork({"y": [f"x{i}" for i in range(6)]}, states={f"x{i}": list(range(30)) for i in range(6)})
    text = net.fit(rows).report_.certificate.directions[0]
    assert net.node("y").configurations is not None
    assert text.startswith("log P(y=")
    assert "more of 'y' -> -inf (never seen)" in text


def test_a_noisy_or_whose_leak_never_worked_has_no_maximum() -> None:
    rows = {"a": [0, 0, 0, 1, 1, 1], "y": [0, 0, 0, 0, 1, 1]}
    options: dict[str, Any] = {"nodes": {"y": "noisy-or"}}
    found = certificate([("a", "y")], rows, **options)
    assert found.exists is False
    assert found.directions == ("weight of '(leak)' in 'y' -> 0 (never seen to work alone)",)
    assert certificate([("a", "y")], {**rows, "y": [0, 0, 1, 0, 1, 1]}, **options).exists is True
    assert certificate([("a", "y")], rows, prior=1.0, **options).exists is True
    # Without a leak it is the model that says so.
    assert certificate([("a", "y")], rows, nodes={"y": sf.NoisyOr(leak=False)}).exists is True
    idle = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "y": [0, 0, 1, 0]}
    found = certificate([("a", "y"), ("b", "y")], idle, nodes={"y": sf.NoisyOr(leak=False)})
    assert found.exists is False
    assert found.directions == ("weight of ('b', 1) in 'y' -> 0 (never seen to work alone)",)


# -- what is best under a prior --------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["mean", "map"])
def test_tables_under_a_prior_are_exact_and_tampering_shows(estimate: Any) -> None:
    rng = np.random.default_rng(4)
    rows = {"a": rng.integers(0, 3, 80), "b": rng.integers(0, 2, 80)}
    net = sf.BayesianNetwork([("a", "b")], prior=1.7, estimate=estimate).fit(rows)
    found = net.report_.certificate
    assert (found.exists, found.bound) == (True, True)
    assert found.value_gap == pytest.approx(0.0, abs=1e-14)
    assert ("posterior mean" in found.slope_unit) == (estimate == "mean")
    node = net.fitted_.nodes["b"]
    moved = node.rows + np.array([[0.02, -0.02], [0.0, 0.0], [-0.1, 0.1]])
    there = replaced(node, rows=moved)
    weighed = node.counts + 1.7 - (estimate == "map")
    expected = float((weighed * np.log(node.rows / moved)).sum()) / 80
    assert certificate_at(net, b=there).value_gap == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("estimate", ["mean", "map"])
@pytest.mark.parametrize("prior", ["linear", "joint"])
def test_regressions_under_a_prior_are_exact_and_tampering_shows(prior: Any, estimate: Any) -> None:
    rng = np.random.default_rng(6)
    rows = {"x": rng.normal(size=25), "z": 1e3 + rng.normal(size=25), "y": rng.normal(size=25)}
    joint = sf.NormalWishart(mean=[0.0, 0.0, 0.0], strength=2.0, dof=6.0, inverse_scale=np.eye(3), names=list("xzy"))
    law = joint if prior == "joint" else sf.LinearGaussianPrior(2.0, 1.0)
    net = sf.BayesianNetwork({"y": ["x", "z"]}, prior=law, estimate=estimate).fit(rows)
    found = net.report_.certificate
    assert (found.exists, found.bound) == (True, True)
    assert found.value_gap is not None
    assert found.value_gap < 1e-12
    node, summary = net.fitted_.nodes["y"], net.statistics_

    def objective(point: Any) -> float:
        there = replace(node, weights=np.array([point[:3]]), variance=np.array([np.exp(point[3])]))
        return float(there.log_likelihood(summary) + there.log_prior())

    at = np.append(node.weights[0], np.log(node.variance[0]))
    search: Any = minimize
    best = -float(search(lambda point: -objective(point), at, method="Nelder-Mead").fun)
    assert best - objective(at) < 1e-8
    moved = at + np.array([0.01, 0.02, -1e-5, 0.3])
    there = replace(node, weights=moved[None, :3], variance=np.exp(moved[3:]))
    assert certificate_at(net, y=there).value_gap == pytest.approx((objective(at) - objective(moved)) / 25, rel=1e-8)


def test_a_noisy_or_under_a_prior_is_bounded_by_its_dual() -> None:
    rng = np.random.default_rng(9)
    rows = {"a": rng.integers(0, 2, 60), "b": rng.integers(0, 2, 60), "y": rng.integers(0, 2, 60)}
    net = sf.BayesianNetwork([("a", "y"), ("b", "y")], nodes={"y": "noisy-or"}, prior=0.5).fit(rows)
    found = net.report_.certificate
    assert (found.exists, found.bound) == (True, True)
    assert found.value_gap is not None
    assert found.value_gap < 1e-12
    node, summary = net.fitted_.nodes["y"], net.statistics_
    best = node.log_likelihood(summary) + node.log_prior()
    moved = replace(node, weights=node.weights + 0.2)
    loss = (best - moved.log_likelihood(summary) - moved.log_prior()) / 60
    bound = certificate_at(net, y=moved).value_gap
    assert bound is not None
    assert bound >= loss > 1e-3


@pytest.mark.parametrize("size", [1e-160, 1e-300])
@pytest.mark.parametrize("column", ["x", "y"])
def test_values_whose_squares_have_no_digits_are_named(column: str, size: float) -> None:
    rows = {"x": np.array([1.0, 2.0, 3.0, 4.0, 5.0]), "y": np.array([1.0, 3.0, 2.0, 5.0, 4.0])}
    rows[column] = rows[column] * size
    with pytest.raises(sf.SufficeError, match=f"'{column}'.* so small"):
        sf.BayesianNetwork([("x", "y")], states={"x": "real", "y": "real"}).fit(rows)
    with pytest.raises(sf.SufficeError, match=f"'{column}'.* too small to square"):
        sf.GaussianGraph([("x", "y")]).fit(rows)


def test_small_values_keep_their_digits() -> None:
    rows = {"x": np.array([1.0, 2.0, 3.0, 4.0, 5.0]), "y": 1e-120 * np.array([1.0, 3.0, 2.0, 5.0, 4.0])}
    net = sf.BayesianNetwork([("x", "y")], states={"x": "real", "y": "real"}).fit(rows)
    design = np.column_stack([np.ones(5), rows["x"]])
    left = exact.squares(design, rows["y"], exact.solution(design, rows["y"]))
    assert net.node("y").variance_ == pytest.approx(float(left * 10**240) / 5 * 1e-240, rel=1e-14)
    assert net.report_.certificate.exists is True
