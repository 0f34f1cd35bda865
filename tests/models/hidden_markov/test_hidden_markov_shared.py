"""What states share and what is forbidden: tied laws, tied covariances, structural zeros, and their standard errors."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import suffice as sf

Floats = NDArray[np.float64]


def forward(initial: Floats, transitions: Floats, densities: Floats) -> float:
    """Log-likelihood of one sequence from densities (steps, K)."""
    ahead, total = initial * densities[0], 0.0
    for row in densities[1:]:
        total += np.log(ahead.sum())
        ahead = (ahead / ahead.sum()) @ transitions * row
    return float(total + np.log(ahead.sum()))


def hessian(function: Any, x: Floats, step: float = 1e-4) -> Floats:
    """Second derivatives by central differences."""
    found = np.empty((len(x), len(x)))
    for i, j in itertools.product(range(len(x)), repeat=2):
        a, b = np.eye(len(x))[i] * step, np.eye(len(x))[j] * step
        found[i, j] = function(x + a + b) - function(x + a - b) - function(x - a + b) + function(x - a - b)
    return found / (4 * step * step)


# -- tied laws and one covariance ------------------------------------------------------------------------------------


def test_tied_states_count_once_in_a_tied_covariance() -> None:
    rng = np.random.default_rng(1)
    z = np.repeat([0, 1, 2], [10, 10, 30])
    x = np.r_[rng.normal(0, 1, 20), rng.normal(9, 4, 30)]
    model = sf.HiddenMarkovModel(3, sf.Normal(), covariance="tied", tied=[(0, 1)]).fit([x], states=[z])
    within = sum(((part - part.mean()) ** 2).sum() for part in (x[:20], x[20:])) / 50
    assert [law.variance_ for law in model.emissions_] == pytest.approx([within] * 3, rel=1e-12)
    assert [law.mean_ for law in model.emissions_] == pytest.approx([x[:20].mean()] * 2 + [x[20:].mean()], rel=1e-12)
    assert model.n_params_ == 2 + 6 + 2 + 1  # first states, transitions, means, one variance


def test_tied_mixtures_count_once_in_a_tied_covariance() -> None:
    rng = np.random.default_rng(3)
    x = np.r_[rng.normal(0, 1, 40), rng.normal(9, 1, 40)]
    one = sf.HiddenMarkovModel(1, sf.Mixture(sf.Normal(), 2), covariance="tied").fit([x])
    two = sf.HiddenMarkovModel(
        2, sf.Mixture(sf.Normal(), 2), covariance="tied", tied=[(0, 1)], transitions=np.full((2, 2), 0.5),
        initial=[0.5, 0.5], fixed=["initial", "transitions"],
    ).fit([x])  # fmt: skip
    assert two.report_.log_likelihood == pytest.approx(one.report_.log_likelihood, rel=1e-9)
    assert two.emissions_[0].components_[0].variance_ == pytest.approx(one.emissions_[0].components_[0].variance_, 1e-4)


@pytest.mark.parametrize("seed", [0, 2])
def test_em_with_tied_laws_and_covariance_ends_at_a_maximum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(m, s, 30) for m, s in ((0, 1), (5, 2), (9, 0.3))])
    model = sf.HiddenMarkovModel(3, sf.Normal(), covariance="tied", tied=[(0, 1)], tolerance=1e-8).fit([x])
    assert model.report_.converged

    def loss(theta: Floats) -> float:
        sd = np.exp(theta[2] / 2)
        densities = np.stack([stats.norm.pdf(x, theta[k], sd) for k in (0, 0, 1)], axis=1)
        return -forward(model.initial_, model.transitions_, densities)

    laws = model.emissions_
    start = np.array([laws[0].mean_, laws[2].mean_, np.log(laws[0].variance_)])
    assert -loss(start) == pytest.approx(model.report_.log_likelihood, rel=1e-10)
    found = optimize.minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    np.testing.assert_allclose(found.x, start, atol=1e-4)
    assert found.fun == pytest.approx(loss(start), abs=1e-7)


def test_different_starts_of_tied_states_are_refused() -> None:
    model = sf.HiddenMarkovModel(2, sf.Normal(), tied=[(0, 1)], emissions=[(0, 1), (1, 1)])
    with pytest.raises(sf.OptionError, match="share one distribution"):
        model.fit([[1.0, 2.0, 3.0]])


# -- standard errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["spherical", "tied", "diagonal"])
def test_errors_of_shared_variances_are_those_of_the_hessian(shape: Any) -> None:
    rng = np.random.default_rng(4)
    z = np.cumsum(rng.random(150) < 0.2) % 2
    x = rng.normal(size=(150, 2)) * [1.0, 1.5] + 2.0 * z[:, None]
    start: dict[str, Any] = {"initial": [0.5, 0.5], "transitions": [[0.8, 0.2], [0.2, 0.8]]}
    model = sf.HiddenMarkovModel(
        2, sf.MultivariateNormal(), covariance=shape, fixed=["initial", "transitions"], tolerance=1e-10, **start
    ).fit([x])
    means = np.stack([law.mean_ for law in model.emissions_])
    covariances = np.stack([law.covariance_ for law in model.emissions_])

    def matrices(theta: Floats) -> Floats:
        if shape == "spherical":
            return np.stack([np.eye(2) * value for value in theta])
        if shape == "diagonal":
            return np.stack([np.diag(theta[:2]), np.diag(theta[2:])])
        return np.stack([np.array([[theta[0], theta[1]], [theta[1], theta[2]]])] * 2)

    def value(theta: Floats) -> float:
        laws = zip(theta[:4].reshape(2, 2), matrices(theta[4:]), strict=True)
        densities = np.stack([stats.multivariate_normal(m, c).pdf(x) for m, c in laws], axis=1)
        return forward(np.array([0.5, 0.5]), np.array(start["transitions"]), densities)

    free = {
        "spherical": covariances[:, 0, 0],
        "diagonal": np.concatenate([np.diag(matrix) for matrix in covariances]),
        "tied": covariances[0][np.triu_indices(2)],
    }[shape]
    point = np.concatenate([means.ravel(), free])
    assert value(point) == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian(value, point))))
    found = model.standard_errors_of([x])["emissions"]
    np.testing.assert_allclose(found["means"].ravel(), errors[:4], rtol=1e-3)
    shown = {
        "spherical": found["covariances"][:, 0, 0],
        "diagonal": np.concatenate([np.diag(matrix) for matrix in found["covariances"]]),
        "tied": found["covariances"][1][np.triu_indices(2)],
    }[shape]
    np.testing.assert_allclose(shown, errors[4:], rtol=1e-3)
    if shape == "spherical":
        assert found["covariances"][0, 0, 0] == found["covariances"][0, 1, 1]


# -- structural zeros ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "paths", "words"),
    [
        ({"topology": "left-right"}, ["LFLF"], "Sequence 0, step 0 begins in state 'L'"),
        ({"topology": "left-right"}, ["FFLF"], "Sequence 0, step 3 goes from 'L' to 'F'"),
        ({"topology": "left-right", "prior": 1.0}, ["FFLF"], "probability 0"),
        ({"initial": [1, 0]}, ["LFLF"], "begins in state 'L'"),
        ({"transitions": [[1, 0], [0.5, 0.5]]}, ["FFFL"], "goes from 'F' to 'L'"),
        ({"emissions": [[0, 1], [0.5, 0.5]]}, ["FLLL"], "step 0 is in state 'F'"),
        ({"topology": "left-right"}, [["F", None, "L", "F"]], "goes from 'L' to 'F'"),
    ],
)
def test_known_states_that_break_the_structure_are_named(options: dict[str, Any], paths: Any, words: str) -> None:
    law = sf.Categorical(states=["a", "b"])
    with pytest.raises(sf.EstimateError, match=words):
        sf.HiddenMarkovModel(["F", "L"], law, **options).fit(["abab"], states=paths)


def test_sequences_that_are_added_keep_the_structure() -> None:
    model = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), topology="left-right").fit(["abab"], states=["FFLL"])
    with pytest.raises(sf.EstimateError, match="goes from 'L' to 'F'"):
        model.partial_fit(["ab"], states=["FL"]).partial_fit(["aab"], states=["FLF"])
    assert model.transitions_[1].tolist() == [0.0, 1.0]


def test_zeros_of_emissions_stay_in_every_run_and_under_a_prior() -> None:
    rng = np.random.default_rng(1)
    data = ["".join(rng.choice(list("abc"), 30)) for _ in range(5)]
    given = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]
    for prior in (None, 1.0):
        model = sf.HiddenMarkovModel(
            2, sf.Categorical(states=list("abc")), emissions=given, n_init=4, prior=prior, tolerance=1e-2
        ).fit(data)
        assert model.emission_probabilities_[0, 2] == 0.0
        assert model.emission_probabilities_.sum(axis=1) == pytest.approx([1, 1])
        assert model.n_params_ == 1 + 2 + (1 + 2)
    counted = sf.HiddenMarkovModel(2, sf.Categorical(states=list("abc")), emissions=given, prior=1.0)
    counted.fit(["abc"], states=[[0, 0, 1]])
    np.testing.assert_allclose(counted.emission_probabilities_, [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])


# -- taking out ------------------------------------------------------------------------------------------------------


def test_what_was_never_learned_cannot_be_taken_out() -> None:
    model = sf.HiddenMarkovModel(["F", "L"], sf.Categorical()).fit(["aab", "aaba"], states=["FFL", "FFFL"])
    before = model.emission_probabilities_.copy()
    with pytest.raises(sf.EstimateError, match="never learned"):
        model.unlearn(["bbb"], states=["FFL"])
    assert (model.emission_probabilities_ == before).all()
    for law, steps in ((sf.Normal(), [100.0, 200.0, 300.0]), (sf.Gamma(), [9.0, 1.0, 7.0]), (sf.Poisson(), [9, 9, 9])):
        real = sf.HiddenMarkovModel(["F", "L"], law).fit([[1, 2, 3], [2, 3, 1, 4]], states=["FFL", "FFFL"])
        with pytest.raises(sf.EstimateError, match="never learned"):
            real.unlearn([steps], states=["FFL"])


@pytest.mark.parametrize("law", [sf.Normal(), sf.Gamma(), sf.Poisson(), sf.Normal(mean=0.0)])
def test_taking_out_leaves_the_fit_of_the_rest(law: Any) -> None:
    rng = np.random.default_rng(0)
    words = [rng.poisson(4, size=n) + 1.0 for n in (9, 7, 8)]
    paths = [rng.integers(0, 2, len(word)) for word in words]
    model = sf.HiddenMarkovModel(2, law).fit(words, states=paths).unlearn(words[1:2], states=paths[1:2])
    rest = sf.HiddenMarkovModel(2, law).fit([words[0], words[2]], states=[paths[0], paths[2]])
    for mine, other in zip(model.emissions_, rest.emissions_, strict=True):
        assert list(mine.parameters_.values()) == pytest.approx(list(other.parameters_.values()), rel=1e-9)
    assert model.report_.log_likelihood == pytest.approx(rest.report_.log_likelihood, rel=1e-9)


def test_added_sequences_bring_symbols_and_units() -> None:
    both = ["aab", "acb"], ["FFL", "FLL"]
    model = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), prior=1.0).fit(both[0][:1], states=both[1][:1])
    model.partial_fit(both[0][1:], states=both[1][1:])
    whole = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), prior=1.0).fit(both[0], states=both[1])
    assert model.symbols_ == whole.symbols_ == ("a", "b", "c")
    np.testing.assert_allclose(model.emission_probabilities_, whole.emission_probabilities_, rtol=1e-14)
    one, two, path = [1.0, 1, 1, 5, 6, 7], [1.0, 1, 1, 500, 6, 7], [0, 0, 0, 1, 1, 1]
    grown = sf.HiddenMarkovModel(2, sf.Normal()).fit([one], states=[path]).partial_fit([two], states=[path])
    assert grown.emissions_[0].variance_ == pytest.approx(1e-6 * np.var([*one, *two]), rel=1e-9)
    closed = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(states=["a", "b"])).fit(["aab"], states=["FFL"])
    with pytest.raises(sf.UnknownStateError, match="'c'"):
        closed.partial_fit(["acb"], states=["FLL"])


# -- known states that are not enough --------------------------------------------------------------------------------


def test_known_states_do_not_settle_mixtures_or_missing_columns() -> None:
    rng = np.random.default_rng(5)
    x = np.c_[np.r_[rng.normal(0, 1, 30), rng.normal(6, 1, 30)], rng.integers(0, 2, 60)]
    law = [sf.Mixture(sf.Normal(), 2), sf.Categorical()]
    known = sf.HiddenMarkovModel(1, law).fit([x], states=[[0] * 60])
    assert known.report_.log_likelihood == pytest.approx(
        sf.HiddenMarkovModel(1, law).fit([x]).report_.log_likelihood, rel=1e-9
    )
    y = rng.normal(size=(60, 2)) @ np.array([[1.0, 0.9], [0.0, 0.3]])
    y[:25, 1] = np.nan
    gaps = sf.HiddenMarkovModel(1, sf.MultivariateNormal(), tolerance=1e-9).fit([y], states=[[0] * 60])

    def loss(theta: Floats) -> float:
        root = np.array([[np.exp(theta[2]), 0.0], [theta[3], np.exp(theta[4])]])
        covariance = root @ root.T
        both = stats.multivariate_normal(theta[:2], covariance).logpdf(y[25:]).sum()
        return -float(both + stats.norm.logpdf(y[:25, 0], theta[0], np.sqrt(covariance[0, 0])).sum())

    best = optimize.minimize(loss, np.zeros(5), method="BFGS")
    assert gaps.report_.log_likelihood == pytest.approx(-best.fun, rel=1e-7)
    np.testing.assert_allclose(gaps.emissions_[0].mean_, best.x[:2], atol=1e-4)
    with pytest.raises(sf.OptionError, match="learned by EM"):
        gaps.partial_fit([y], states=[[0] * 60])


def test_errors_of_a_shared_covariance_do_not_hang_on_the_order_of_a_tied_group() -> None:
    rng = np.random.default_rng(4)
    path = rng.integers(0, 3, 300)
    values = rng.normal(size=(300, 2)) + 3.0 * path[:, None]
    model = sf.HiddenMarkovModel(3, sf.MultivariateNormal(), covariance="tied", tied=[(2, 0)])
    model.fit([values], states=[path])
    errors = model.standard_errors_of([values], states=[path])["emissions"]["covariances"]
    # Var(S_ij) = (S_ii S_jj + S_ij^2) / n of a normal sample.
    spread = model.emissions_[0].covariance_
    sizes = np.diag(spread)
    expected = np.sqrt((np.outer(sizes, sizes) + spread**2) / 300)
    for found in errors:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_parameter_that_the_law_was_given_with_has_no_error() -> None:
    rng = np.random.default_rng(4)
    path = np.arange(60) // 10 % 2
    values = rng.normal(size=60) + 3.0 * path
    for law, rows, name in (
        (sf.Normal(mean=0.0), values, "parameters"),
        ([sf.Normal(mean=0.0)], values, "0.parameters"),
    ):
        model = sf.HiddenMarkovModel(2, law).fit([rows], states=[path])
        found = model.standard_errors_of([rows], states=[path])["emissions"][name]
        assert np.isnan(found[:, 0]).all()
        for state in (0, 1):
            square = np.mean(values[path == state] ** 2)  # Of 30 values about a known mean: Var = 2 v^2 / 30.
            np.testing.assert_allclose(found[state, 1], square * np.sqrt(2 / 30), rtol=1e-6)
