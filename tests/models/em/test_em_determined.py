"""What rows determine of latent networks, against the rank of the Jacobian of the probabilities they have."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import suffice as sf

Floats = NDArray[np.float64]
Kinds = (sf.BayesianNetwork, sf.MarkovNetwork)


def latent_classes(items: int, n: int, seed: int = 0) -> dict[str, Any]:
    """Rows of binary items, most of them 1 in one class and 0 in the other."""
    rng = np.random.default_rng(seed)
    law = np.stack([rng.uniform(0.1, 0.3, items), rng.uniform(0.7, 0.9, items)])
    hidden = rng.integers(2, size=n)
    return {f"y{k}": (rng.random(n) < law[hidden, k]).astype(int) for k in range(items)}


def jacobian_rank(shares: Floats, tables: list[Floats]) -> int:
    """The rank of the probabilities of all answers as functions of the logits of a latent class model."""
    classes, sizes = len(shares), [table.shape[1] for table in tables]

    def law(theta: Floats) -> Floats:
        parts, at = [np.append(theta[: classes - 1], 0.0)], classes - 1
        joint = np.exp(parts[0]) / np.exp(parts[0]).sum()
        joint = joint.reshape(classes, *([1] * len(sizes)))
        for place, size in enumerate(sizes):
            rows = np.concatenate(
                [theta[at : at + classes * (size - 1)].reshape(classes, -1), np.zeros((classes, 1))], 1
            )
            rows = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
            shape = [classes] + [1] * len(sizes)
            shape[place + 1] = size
            joint = joint * rows.reshape(shape)
            at += classes * (size - 1)
        return np.asarray(joint.sum(axis=0).ravel())

    here = np.concatenate(
        [np.log(shares[:-1] / shares[-1]), *(np.log(table[:, :-1] / table[:, -1:]).ravel() for table in tables)]
    )
    steps = 1e-5 * np.eye(len(here))
    jacobian = np.array([(law(here + step) - law(here - step)) / 2e-5 for step in steps])
    return int(np.linalg.matrix_rank(jacobian, tol=1e-6 * np.linalg.norm(jacobian, 2)))


def fitted(make: Any, data: dict[str, Any], classes: int = 2, **options: Any) -> Any:
    edges = [("h", name) for name in data]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
        return make(edges, hidden={"h": classes}, random_state=0, max_iter=20_000, **options).fit(data)


@pytest.mark.parametrize("make", Kinds)
def test_two_classes_of_two_items_are_not_determined(make: Any) -> None:
    data = latent_classes(2, 500)
    fit = fitted(make, data, n_init=3)
    curvature = fit.report_.certificate.curvature
    assert (curvature.rank, curvature.size, curvature.point) == (3, 5, "flat")
    assert (curvature.reached, curvature.starts) == (3, 3)
    assert fit.n_params_ == fit.report_.n_params == 3
    assert fit.report_.aic == pytest.approx(6 - 2 * fit.report_.log_likelihood)
    assert len(curvature.flat) == 2
    assert any(text.startswith("not identified: the rows determine 3 of 5") for text in fit.report_.warnings)
    assert "information" in dict(fit.report_.lines())
    if make is sf.MarkovNetwork:
        assert fit.df_ == 0
        assert np.isinf(fit.standard_errors_).all()
    else:
        assert np.isinf(fit.node("h").standard_errors_.values).all()
        assert np.isinf(fit.node("y0").standard_errors_.values).all()


@pytest.mark.parametrize("make", Kinds)
def test_two_classes_of_three_items_are(make: Any) -> None:
    fit = fitted(make, latent_classes(3, 800, seed=2))
    curvature = fit.report_.certificate.curvature
    assert (curvature.rank, curvature.size, curvature.point, curvature.flat) == (7, 7, "maximum", ())
    assert fit.n_params_ == 7
    assert not any("identified" in text for text in fit.report_.warnings)


@pytest.mark.parametrize(("items", "classes"), [(2, 2), (3, 2), (3, 3), (4, 3), (5, 3)])
def test_the_rank_is_that_of_the_jacobian(items: int, classes: int) -> None:
    """Three classes of four binary items have 14 parameters for 15 frequencies, and rank 13 (Goodman 1974)."""
    rng = np.random.default_rng(items * 10 + classes)
    law = rng.uniform(0.15, 0.85, size=(classes, items))
    shares = rng.dirichlet(np.full(classes, 5.0))
    cells = np.array(list(itertools.product([0, 1], repeat=items)))
    joint = shares[:, None] * np.prod(np.where(cells == 1, law[:, None], 1 - law[:, None]), axis=2)
    data = {f"y{k}": cells[:, k] for k in range(items)}
    edges = [("h", name) for name in data]
    # At the truth itself, with the frequencies that it expects: EM stays, and the information is the expected one.
    start = {"h": shares, **{f"y{k}": np.stack([1 - law[:, k], law[:, k]], axis=1) for k in range(items)}}
    net = sf.BayesianNetwork(edges, hidden={"h": classes}, start=start, states={name: [0, 1] for name in data})
    net.fit(data, sample_weight=1e4 * joint.sum(axis=0))
    curvature = net.report_.certificate.curvature
    assert curvature is not None
    expected = jacobian_rank(shares, [start[name] for name in data])
    assert (curvature.rank, curvature.size) == (expected, classes - 1 + classes * items)
    assert net.n_params_ == expected
    if (items, classes) == (4, 3):
        assert expected == 13


def test_classes_that_begin_alike_end_at_a_saddle() -> None:
    data = latent_classes(3, 800, seed=2)
    start = {"h": [0.5, 0.5], **{name: [[0.5, 0.5], [0.5, 0.5]] for name in data}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.SufficeWarning)
        net = fitted(sf.BayesianNetwork, data, start=start)
    curvature = net.report_.certificate.curvature
    assert curvature is not None
    assert curvature.point == "saddle"
    assert curvature.smallest < -0.01
    assert any("saddle" in text for text in net.report_.warnings)


def test_the_unit_and_the_origin_of_a_hidden_number_are_not_determined() -> None:
    """A factor and three columns: of 11 parameters the means and covariances determine 9."""
    rng = np.random.default_rng(3)
    factor = rng.normal(size=400)
    data = {f"x{k}": (k + 1.0) + (0.5 + 0.4 * k) * factor + 0.6 * rng.normal(size=400) for k in range(3)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.errors.ConvergenceWarning)
        net = sf.BayesianNetwork(
            [("f", name) for name in data], hidden={"f": "real"}, random_state=1, max_iter=20_000, tolerance=1e-8
        ).fit(data)
    curvature = net.report_.certificate.curvature
    assert curvature is not None
    assert (curvature.rank, curvature.size) == (9, 11)
    assert net.n_params_ == 9
    assert np.isinf(net.node("x0").standard_errors_).all()
    assert np.isfinite(net.node("x0").variance_errors_)


def test_a_prior_determines_what_rows_do_not() -> None:
    net = fitted(sf.BayesianNetwork, latent_classes(2, 300), prior=2.0, estimate="map", tolerance=1e-9)
    assert net.report_.certificate.curvature.point == "maximum"
    assert np.isfinite(net.node("h").standard_errors_.values).all()


def test_where_em_has_not_converged_nothing_is_said() -> None:
    net = sf.BayesianNetwork([("h", "y0"), ("h", "y1"), ("h", "y2")], hidden={"h": 2}, random_state=0, max_iter=2)
    with pytest.warns(sf.errors.ConvergenceWarning):
        net.fit(latent_classes(3, 800, seed=2))
    assert net.report_.certificate.curvature is None
    assert net.n_params_ == 7
    assert any("was not computed" in text for text in net.report_.warnings)


def test_a_report_with_a_curvature_is_read_again(tmp_path: Any) -> None:
    net = fitted(sf.BayesianNetwork, latent_classes(2, 200))
    net.write(tmp_path / "net.json")
    again = sf.read(tmp_path / "net.json")
    assert again.report_ == net.report_
    assert again.n_params_ == 3
    assert np.isinf(again.node("h").standard_errors_.values).all()


def log_posterior(root: Any, items: Any, rows: Any, extra: float) -> float:
    """The objective of two classes and binary items, with `extra` pseudo-counts in each cell, by definition."""
    parts = [np.stack([1 - items[:, at], items[:, at]], axis=1)[:, rows[:, at]] for at in range(rows.shape[1])]
    likelihood = np.log(root @ np.prod(parts, axis=0)).sum()
    return float(likelihood + extra * (np.log(root).sum() + np.log(items).sum() + np.log1p(-items).sum()))


@pytest.mark.parametrize(
    ("options", "extra"),
    [({"prior": 2.0, "estimate": "map"}, 1.0), ({"prior": 1.5}, 1.5), ({"prior": 1.0, "estimate": "map"}, None)],
)
def test_pseudo_counts_in_every_table_prove_a_maximum(options: dict[str, Any], extra: float | None) -> None:
    """Compact parameters and an objective of -inf at every edge; without any extra count nothing is decided."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (40, 3))
    net = sf.BayesianNetwork([("c", at) for at in range(3)], hidden={"c": 2}, random_state=0, **options)
    net.fit({at: rows[:, at] for at in range(3)})
    assert net.report_.certificate.exists is (None if extra is None else True)
    if extra is None:
        return
    root, items = net.table("c").values, np.stack([net.table(at).values[:, 1] for at in range(3)], axis=1)
    best = log_posterior(root, items, rows, extra)
    for edge in (1e-9, 1e-12):
        for at in np.ndindex(2, 3):
            for value in (edge, 1 - edge):
                moved = items.copy()
                moved[at] = value
                assert log_posterior(root, moved, rows, extra) < best - 1.0
        assert log_posterior(np.array([edge, 1 - edge]), items, rows, extra) < best - 1.0


def test_gaps_under_pseudo_counts_have_a_maximum_and_free_densities_are_not_decided() -> None:
    gaps = {"a": [0, 1, None, 1, 0], "b": [1, None, 0, 1, 1]}
    assert sf.BayesianNetwork([("a", "b")], prior=1.0).fit(gaps).report_.certificate.exists is True
    assert sf.BayesianNetwork([("a", "b")], prior={"a": 1.0}).fit(gaps).report_.certificate.exists is None
    real = {**gaps, "y": [0.1, 2.0, None, 1.0, -1.0]}
    mixed = sf.BayesianNetwork([("a", "b"), ("a", "y")], prior=1.0)
    assert mixed.fit(real).report_.certificate.exists is not True


@pytest.mark.parametrize("prior", [sf.Normal(variance=1.0), sf.Normal(variance=100.0)])
def test_a_prior_on_all_weights_proves_a_maximum_with_hidden_variables(prior: Any) -> None:
    """Probabilities are at most 1, and the penalty grows without end."""
    rng = np.random.default_rng(1)
    rows = {name: rng.integers(0, 2, 60) for name in "xyz"}
    edges = [("c", name) for name in "xyz"]
    model = sf.MarkovNetwork(edges, hidden={"c": 2}, random_state=0, prior=prior).fit(rows)
    assert model.report_.certificate.exists is True
    assert sf.MarkovNetwork(edges, hidden={"c": 2}, random_state=0).fit(rows).report_.certificate.exists is not True
    best = model.report_.objective

    def objective(weights: Any) -> float:
        law = sf.MarkovNetwork(edges, states={name: [0, 1] for name in ("c", *"xyz")}).with_weights(weights)
        seen = law.query(["x", "y", "z"]).values[rows["x"], rows["y"], rows["z"]]
        return float(np.log(seen).sum() - (weights**2).sum() / (2 * prior.variance_))

    weights = np.asarray(model.weights_)
    constant = best - objective(weights)
    for direction in rng.normal(size=(20, len(weights))):
        far = weights + 200.0 * direction / np.linalg.norm(direction)
        assert objective(far) + constant < best
