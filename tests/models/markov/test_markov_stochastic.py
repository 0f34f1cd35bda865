"""Stochastic maximum likelihood and contrastive divergence: steps by hand, the exact optimum, answers by sampling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines.chain_means import ChainMeans
from suffice.engines.gibbs import GibbsChains
from suffice.fitting.control import Control
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import CodedRows
from suffice.models.markov.approximate.solvers import cd_gradient, sml_gradient
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers.penalties import GaussianPenalty

EDGES = sf.MarkovNetwork.grid_edges(4, 4)


def ising_rows(n: int, seed: int = 0, edges: Any = EDGES) -> tuple[dict[Any, Any], np.ndarray]:
    rng = np.random.default_rng(seed)
    nodes = dict.fromkeys(node for edge in edges for node in edge)
    weights = np.concatenate([rng.normal(0.0, 0.2, len(nodes)), rng.uniform(0.0, 0.5, len(edges))])
    return sf.MarkovNetwork.ising(edges).with_weights(weights).sample(n, random_state=seed + 1), weights


def small_problem(**changes: Any) -> SampledProblem:
    """Three variables with a table, a tied feature and a real-valued one."""
    terms: list[Any] = [
        ("a", "b"),
        sf.Feature([("a", "b"), ("b", "c")], lambda x, y: x == y),
        sf.Feature("c", lambda c: 1.5 * c),
    ]
    domain = sf.Domain(
        sf.Variable.discrete(name, states) for name, states in (("a", [0, 1]), ("b", [0, 1]), ("c", [0, 1, 2]))
    )
    rng = np.random.default_rng(4)
    states = np.array([rng.integers(0, card, 60) for card in (2, 2, 3)], dtype=np.uint8)
    model = LogLinear(domain, terms)
    margins = design_margins(model, states)
    given = {"control": Control(), "start": np.zeros(model.n_weights), "sampling": GibbsSampling(chains=6)}
    given |= {"penalty": None, "weight": 60.0, "seed": np.random.default_rng(0), "rows": CodedRows(states, np.ones(60))}
    return SampledProblem(model=model, margins=margins, **{**given, **changes})


def design_margins(model: LogLinear, states: np.ndarray) -> np.ndarray:
    """Shares of all cells, counted by hand."""
    found = np.zeros(model.n_cells)
    for row in states.T:
        codes = dict(zip(model.domain.names, row, strict=True))
        for place, scope in enumerate(model.scopes):
            model.part(found, place)[tuple(codes[name] for name in scope)] += 1.0
    return np.asarray(found / states.shape[1])


def test_one_step_of_sml_from_fixed_samples() -> None:
    """w + step (observed - mean over chains - prior / N), the features of the chains computed from their definition."""
    precision = np.full(6, 0.25)
    problem = small_problem(penalty=GaussianPenalty(np.full(6, 0.1), precision))
    weights = np.array([0.1, -0.2, 0.3, 0.0, 0.5, -0.1])
    chains = problem.sampler.start(6, 9)
    copy = GibbsChains.from_arrays({name: array.copy() for name, array in chains.to_arrays().items()})
    problem.load(weights)
    problem.sampler.sweep(copy)
    slope = sml_gradient(problem, weights, chains)
    assert (chains.states == copy.states).all()

    def features(states: np.ndarray) -> np.ndarray:
        a, b, c = states.astype(int)
        table = [((a == i) & (b == j)).mean() for i in (0, 1) for j in (0, 1)]
        return np.array([*table, ((a == b) * 1.0 + (b == c)).mean(), (1.5 * c).mean()])

    assert isinstance(problem.rows, CodedRows)
    expected = features(problem.rows.states) - features(copy.states) - precision * (weights - 0.1) / 60.0
    np.testing.assert_allclose(slope, expected, atol=1e-14)


def test_a_minibatch_draws_rows_by_weight() -> None:
    problem = small_problem(batch_size=7)
    assert isinstance(problem.rows, CodedRows)
    only = np.zeros(60)
    only[[3, 8]] = 1.0, 3.0
    weighted = small_problem(rows=CodedRows(problem.rows.states, only))
    chains = weighted.sampler.start(6, 9)
    drawn = weighted.batch(chains, 4000)
    first = (drawn == problem.rows.states[:, [3]]).all(axis=0)
    second = (drawn == problem.rows.states[:, [8]]).all(axis=0)
    assert (first | second).all()
    assert abs(second.mean() - 0.75) < 4.0 * np.sqrt(0.75 * 0.25 / 4000)
    # One update: observed are the means of the rows of the batch.
    weights = np.zeros(6)
    batch = problem.batch(chains, 7)
    measured = sml_gradient(
        problem, weights, GibbsChains.from_arrays({k: v.copy() for k, v in chains.to_arrays().items()}), measuring=True
    )
    slope = sml_gradient(problem, weights, chains)
    moved = problem.model.expected(design_margins(problem.model, batch)) - problem.observed
    np.testing.assert_allclose(slope - measured, moved, atol=1e-14)


@pytest.mark.parametrize("k", [1, 3])
def test_one_step_of_contrastive_divergence(k: int) -> None:
    """Features of the rows less those of the same rows after k sweeps, both from the definition of the features."""
    problem = small_problem(sampling=GibbsSampling(chains=6, sweeps=k))
    weights = np.array([0.1, -0.2, 0.3, 0.0, 0.5, -0.1])
    chains = problem.sampler.start(6, 2)
    rows = problem.batch(chains, 6)
    copy = GibbsChains.from_arrays({name: array.copy() for name, array in chains.to_arrays().items()})
    copy.states[...] = rows
    problem.load(weights)
    problem.sampler.sweep(copy, k)
    slope = cd_gradient(problem, weights, chains)
    before, after = (design_margins(problem.model, states) for states in (rows, copy.states))
    np.testing.assert_allclose(slope, problem.model.matrix.T @ (before - after), atol=1e-14)


def test_one_exact_step_raises_the_likelihood() -> None:
    """The sign: along observed - expected the log-likelihood rises, against it it falls."""
    rows, _ = ising_rows(500)
    network = sf.MarkovNetwork.ising(EDGES).with_weights(np.zeros(40))
    slope = sf.MarkovNetwork.ising(EDGES).fit(rows)
    observed = slope.fitted_.model.expected(slope.fitted_.counts(slope.statistics_) / 500.0)
    expected = network.fitted_.family.moments(np.zeros(40))[1]
    step = 0.05 * (observed - expected)
    up, down = network.with_weights(step).score(rows), network.with_weights(-step).score(rows)
    assert up > network.score(rows) > down


@pytest.mark.parametrize(
    ("size", "options"),
    [(4, {}), (4, {"batch_size": 200}), (10, {}), (6, {"sampling": sf.GibbsSampling(scan="random")})],
)
def test_sml_reaches_the_exact_optimum_within_its_error(size: int, options: dict[str, Any]) -> None:
    edges = sf.MarkovNetwork.grid_edges(size, size)
    rows, _ = ising_rows(2000, edges=edges)
    exact = sf.MarkovNetwork.ising(edges).fit(rows)
    found = sf.MarkovNetwork.ising(edges, solver="sml", random_state=0, max_iter=30_000, **options).fit(rows)
    assert found.converged_
    certificate = found.report_.certificate
    drawn = certificate.monte_carlo
    assert drawn is not None
    assert drawn.exact_gap is not None
    assert not certificate.exact
    assert certificate.engine.startswith("stochastic")
    # The stop: accuracy 0.5 times the largest of p errors of the rows; Monte Carlo noise may exceed it.
    limit = 0.5 * np.sqrt(2.0 * np.log(2.0 * len(found.weights_)) / 2000)
    assert drawn.exact_gap < 2.0 * limit * np.sqrt(2000)
    assert abs(certificate.moment_gap - drawn.exact_gap) < 4.5 * drawn.error
    assert drawn.error < 0.02 * np.sqrt(2000)
    assert drawn.r_hat < 1.02
    assert drawn.effective_sample_size > 3_000
    # The weights are within a part of their standard errors, and the likelihood within a nat a weight.
    away = (found.weights_ - exact.weights_) / exact.standard_errors_
    assert np.sqrt(np.mean(away**2)) < 0.6
    assert 0.0 <= exact.report_.log_likelihood - found.report_.log_likelihood < 0.2 * len(away)


def test_a_finer_accuracy_comes_nearer() -> None:
    rows, _ = ising_rows(2000)
    exact = sf.MarkovNetwork.ising(EDGES).fit(rows)
    fine = sf.GibbsSampling(accuracy=0.15, chains=256)
    found = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=1, max_iter=60_000, sampling=fine).fit(rows)
    assert found.converged_
    away = (found.weights_ - exact.weights_) / exact.standard_errors_
    assert np.sqrt(np.mean(away**2)) < 0.18


def test_sml_with_a_normal_prior_and_tied_real_features() -> None:
    rng = np.random.default_rng(0)
    rows = {name: rng.choice([0, 1, 2], 800, p=[0.5, 0.3, 0.2]) for name in "abcd"}
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    tied = sf.Feature(ring, lambda x, y: 100.0 * x * y, name="tied")
    structure = [("a",), ("b", "c"), tied]
    prior = sf.Normal(variance=np.array([0.5] * 12 + [1e-6]))
    exact = sf.MarkovNetwork(structure, prior=prior).fit(rows)
    found = sf.MarkovNetwork(
        structure, prior=prior, solver="sml", random_state=0, sampling=sf.GibbsSampling(accuracy=0.3), max_iter=60_000
    ).fit(rows)
    assert found.converged_
    assert found.report_.estimate == "MAP"
    # Tables have weights that the prior alone tells apart, with next to no slope: the law is what is compared.
    for pair in (("a", "b"), ("b", "c"), ("a", "c")):
        np.testing.assert_allclose(found.marginal(pair).values, exact.marginal(pair).values, atol=8e-3)
    assert found.weights_[12] == pytest.approx(exact.weights_[12], abs=0.3 * exact.standard_errors_[12])
    assert found.report_.objective == pytest.approx(exact.report_.objective, abs=0.5)
    assert found.report_.certificate.exists is True


def test_the_same_seed_gives_the_same_bits_and_weights_count_rows() -> None:
    rows, _ = ising_rows(300)
    state = np.random.get_state()[1].copy()  # type: ignore[index]
    fits = [sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=seed).fit(rows).weights_ for seed in (3, 3, 4)]
    assert (fits[0] == fits[1]).all()
    assert (fits[0] != fits[2]).any()
    assert (np.random.get_state()[1] == state).all()  # type: ignore[index]
    counts = np.arange(300) % 3
    repeated = {name: np.repeat(values, counts) for name, values in rows.items()}
    pair = [
        sf.MarkovNetwork.ising(EDGES, solver="pseudolikelihood", random_state=0).fit(rows, sample_weight=counts),
        sf.MarkovNetwork.ising(EDGES, solver="pseudolikelihood", random_state=0).fit(repeated),
    ]
    np.testing.assert_allclose(pair[0].weights_, pair[1].weights_, atol=1e-9)
    assert pair[0].report_.weight == pair[1].report_.weight == counts.sum()


def test_contrastive_divergence_is_near_and_says_so() -> None:
    rows, _ = ising_rows(4000)
    exact = sf.MarkovNetwork.ising(EDGES).fit(rows)
    found = sf.MarkovNetwork.ising(
        EDGES, solver="cd", random_state=0, sampling=sf.GibbsSampling(sweeps=2), max_iter=30_000
    ).fit(rows)
    assert found.converged_
    assert "CD-2" in found.report_.method
    assert np.abs(found.weights_ - exact.weights_).max() < 0.06
    assert not found.report_.certificate.exact
    assert found.report_.estimate.startswith("approximate")


def test_existence_is_said_where_a_feature_never_varies() -> None:
    rows, _ = ising_rows(200)
    rows[(0, 0)] = np.ones(200, dtype=int)
    with pytest.warns(sf.ConvergenceWarning, match=r"no maximum: weight of field \(0, 0\) -> inf. Give a prior"):
        found = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0).fit(rows)
    assert found.report_.certificate.exists is False
    assert found.report_.certificate.directions == ("weight of field (0, 0) -> inf",)
    # A finite point on the way is no end.
    assert not found.converged_
    assert found.stop_reason_ == "no maximum"


# -- a network that exact inference does not take --------------------------------------------------------------------


@pytest.fixture(scope="module")
def sampled() -> tuple[sf.MarkovNetwork, sf.MarkovNetwork, dict[Any, Any]]:
    """A fit whose tree is refused, and the same law with its tree."""
    rows, _ = ising_rows(2000)
    found = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0, memory_limit=100).fit(rows)
    return found, sf.MarkovNetwork.ising(EDGES).with_weights(found.weights_), rows


def test_answers_by_sampling_have_honest_errors(sampled: Any) -> None:
    found, exact, _ = sampled
    pair = ((0, 0), (3, 3))
    for given in (None, {(1, 1): 1, (2, 2): -1}, {(1, 1): {1: 0.9, -1: 0.1}}):
        table, truth = found.query(list(pair), given, random_state=5), exact.query(list(pair), given)
        assert (np.abs(table.values - truth.values) < 4.5 * table.standard_errors.values).all()
        assert table.standard_errors.values.max() < 0.01
        assert table.effective_sample_size > 1000
    assert (found.marginal(pair, random_state=1).values == found.marginal(pair, random_state=1).values).all()
    each, truths = found.marginals(random_state=2), exact.marginals()
    for name in found.nodes:
        assert (np.abs(each[name].values - truths[name].values) < 4.5 * each[name].standard_errors.values + 1e-3).all()
    drawn = found.sample(20_000, given={(0, 0): 1}, random_state=3)
    assert set(drawn[(0, 0)]) == {1}
    chance = exact.query([(0, 1)], {(0, 0): 1}).at({(0, 1): 1})
    assert abs((drawn[(0, 1)] == 1).mean() - chance) < 4.5 * np.sqrt(chance * (1 - chance) / 20_000)
    assert len(found.sample(0)[(0, 0)]) == 0


def test_log_z_and_likelihood_have_error_bars(sampled: Any) -> None:
    found, exact, rows = sampled
    estimate = found.estimate_log_partition(random_state=1)
    assert abs(estimate.value - exact.log_partition_) < 4.0 * estimate.standard_error < 0.5
    value, error = found.estimate_score(rows, random_state=2)
    assert abs(value - exact.score(rows)) < 4.0 * error
    drawn = found.report_.certificate.monte_carlo
    assert drawn.exact_gap is None
    assert abs(found.report_.log_likelihood - 2000 * exact.score(rows)) < 4.0 * drawn.log_likelihood_error
    assert "annealed importance sampling" in str(found.report_)
    assert "R-hat" in str(found.report_)


@pytest.mark.parametrize("ask", ["log_partition_", "information_", "plan_"])
def test_what_needs_exact_inference_says_what_to_call(sampled: Any, ask: str) -> None:
    found, _, rows = sampled
    with pytest.raises(sf.SizeError, match=r"largest clique.*estimate_log_partition.*estimate_score"):
        getattr(found, ask)
    with pytest.raises(sf.SizeError, match="estimate_score"):
        found.score(rows)
    with pytest.raises(sf.SizeError, match="estimate_log_partition"):
        found.score_samples(rows)


def test_predictions_from_whole_rows_are_exact(sampled: Any) -> None:
    found, exact, rows = sampled
    few = {name: values[:50] for name, values in rows.items()}
    np.testing.assert_allclose(found.predict_proba(few, (1, 2)), exact.predict_proba(few, (1, 2)), atol=1e-12)
    with pytest.raises(sf.SizeError, match="have missing values"):
        found.predict_proba({name: values for name, values in few.items() if name != (0, 0)}, (1, 2))


def test_a_file_keeps_the_law_and_the_report(sampled: Any, tmp_path: Path) -> None:
    found, _, _ = sampled
    path = tmp_path / "ising.suffice"
    found.write(path)
    again = sf.read(path)
    assert (again.weights_ == found.weights_).all()
    assert again.report_ == found.report_
    assert again.get_params()["sampling"] == found.get_params()["sampling"]
    pair = ((0, 0), (0, 1))
    assert (again.marginal(pair, random_state=1).values == found.marginal(pair, random_state=1).values).all()
    with pytest.raises(sf.SizeError, match="estimate_log_partition"):
        _ = again.log_partition_


def test_a_plan_that_is_too_large_offers_the_approximate_solvers() -> None:
    edges = sf.MarkovNetwork.grid_edges(30, 30)
    with pytest.raises(
        sf.SizeError, match=r"largest clique has \d+ variables and .* cells \(.*B\).*solver='sml'.*'pseudo"
    ):
        sf.MarkovNetwork.ising(edges).fit({node: [1, -1] for edge in edges for node in edge})
    with pytest.raises(
        sf.SizeError, match=r"needs 2.8 kB, and the limit is 1.0 kB.*\(256 B\): \(0, 2\).*solver='sml'.*'pseudo"
    ):
        sf.MarkovNetwork.ising(EDGES, memory_limit=1000).fit(ising_rows(10)[0])


def test_summaries_serve_sml_and_not_what_needs_rows() -> None:
    rows, _ = ising_rows(400)
    sml = sf.MarkovNetwork.ising(EDGES, solver="sml", random_state=0)
    summary = sf.summarize(sml, rows)
    assert (sml.clone().fit(summary).weights_ == sml.clone().fit(rows).weights_).all()
    joined = sml.clone().fit({n: v[:250] for n, v in rows.items()}).partial_fit({n: v[250:] for n, v in rows.items()})
    assert (joined.weights_ == sml.clone().fit(rows).weights_).all()
    for options in ({"solver": "cd"}, {"solver": "pseudolikelihood"}, {"solver": "sml", "batch_size": 10}):
        with pytest.raises(sf.EstimateError, match="needs the rows themselves"):
            sf.MarkovNetwork.ising(EDGES, random_state=0, **options).fit(summary)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampling": 5}, "GibbsSampling"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"solver": "gibbs"}, "'sml'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        sf.MarkovNetwork.ising(EDGES, **options)


@pytest.mark.parametrize("wrong", [{"chains": 1}, {"sweeps": 0}, {"draws": 2}, {"scan": "zigzag"}, {"accuracy": 0.0}])
def test_sampling_options_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(sf.OptionError, match=next(iter(wrong))):
        sf.GibbsSampling(**wrong)


def test_gaps_and_a_laplace_prior_are_refused() -> None:
    rows, _ = ising_rows(50)
    gap = {**rows, (2, 3): [None, *rows[(2, 3)][1:]]}
    with pytest.raises(sf.MissingValueError, match=r"\(2, 3\) has a missing value in row 0"):
        sf.MarkovNetwork.ising(EDGES, solver="sml", missing="raise").fit(gap)
    with pytest.raises(sf.MissingValueError, match=r"\(2, 3\) has a missing value in row 0"):
        sf.MarkovNetwork.ising(EDGES, solver="pseudolikelihood").fit(gap)
    with pytest.raises(sf.OptionError, match="'pseudolikelihood'"):
        sf.MarkovNetwork.ising(EDGES, solver="sml", prior=sf.Laplace(scale=1.0)).fit(rows)


@pytest.mark.filterwarnings("ignore:.*no maximum:suffice.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["sml", "pseudolikelihood"])
def test_cells_that_never_occur_do_not_spoil_the_figures_of_the_chains(solver: Any) -> None:
    """A cell that runs to probability 0 has hardly any variance to estimate; R-hat is about all others."""
    rows = {"a": [0, 0, 0, 1, 0, 0] * 20, "b": [0, 1, 1, 1, 0, 1] * 20, "c": [0, 1, 0, 1, 0, 1] * 20}
    fitted = sf.MarkovNetwork([("a", "b"), ("b", "c")], solver=solver, random_state=2).fit(rows)
    certificate = fitted.report_.certificate
    carlo = certificate.monte_carlo
    assert carlo is not None
    assert certificate.exists is False
    assert certificate.directions == ("weight of a=1, b=0 -> -inf", "weight of b=0, c=1 -> -inf")
    assert 1.0 <= carlo.r_hat < 1.05
    assert 1_000 < carlo.effective_sample_size <= carlo.chains * carlo.draws
    assert 0.0 < carlo.error < 0.01 * np.sqrt(120) / 0.1  # In standard errors of 120 rows; deviations are above 0.1.


def test_mixing_leaves_out_what_does_not_vary() -> None:
    means = np.array([0.4, 1e-5, 0.3, 1e-4])
    size, r_hat = np.array([900.0, np.nan, 700.0, 3.0]), np.array([1.01, np.nan, 1.02, 1.9])
    found = ChainMeans(means, np.full(4, 1e-3), size, r_hat, 100)
    assert found.mixing(np.arange(4) < 3) == (700.0, 1.02)
    assert found.mixing() == (3.0, 1.9)
    assert found.mixing(np.zeros(4, bool)) == (np.inf, 1.0)
