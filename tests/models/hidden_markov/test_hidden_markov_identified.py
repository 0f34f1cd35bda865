"""Hidden chains that their data do not determine say so: rank, flat directions, saddles, starts that agree."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from curvature import hessian

HMM = sf.HiddenMarkovModel
ROWS, SYMBOLS = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])


def drawn(seed: int, n: int, length: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        state, path = int(rng.integers(2)), []
        for _ in range(length):
            path.append(int(rng.choice(3, p=SYMBOLS[state])))
            state = int(rng.choice(2, p=ROWS[state]))
        found.append(path)
    return found


def log_likelihood(theta: np.ndarray, data: list[list[int]]) -> float:
    """Of the free parameters of a chain of two states and three symbols, by its own recursion."""
    initial = np.array([1 - theta[0], theta[0]])
    rows = np.array([[1 - theta[1], theta[1]], [theta[2], 1 - theta[2]]])
    symbols = np.array([[theta[3], theta[4], 1 - theta[3] - theta[4]], [theta[5], theta[6], 1 - theta[5] - theta[6]]])
    total = 0.0
    for path in data:
        ahead = initial * symbols[:, path[0]]
        for symbol in path[1:]:
            ahead = (ahead @ rows) * symbols[:, symbol]
        total += np.log(ahead.sum())
    return float(total)


def theta_of(model: Any) -> np.ndarray:
    symbols = model.emission_probabilities_
    return np.array([model.initial_[1], model.transitions_[0, 1], model.transitions_[1, 0], *symbols[:, :2].ravel()])


def test_a_chain_that_its_data_determine_is_at_a_maximum() -> None:
    data = drawn(0, 60, 15)
    model = HMM(2, sf.Categorical(), n_init=4, max_iter=5000, tolerance=1e-8).fit(data)
    found = model.report_.certificate.curvature
    assert found is not None
    assert (found.rank, found.size, found.point, found.flat) == (7, 7, "maximum", ())
    assert (found.reached, found.starts) == (4, 4)
    information = -hessian(lambda theta: log_likelihood(theta, data), theta_of(model), 1e-4)
    assert np.linalg.eigvalsh(information)[0] > 0
    expected = np.sqrt(np.diag(np.linalg.inv(information)))
    errors = model.standard_errors_of(data)
    np.testing.assert_allclose(errors["transitions"][[0, 1], [1, 0]], expected[1:3], rtol=1e-3)
    np.testing.assert_allclose(errors["emissions"]["probabilities"][:, :2].ravel(), expected[3:], rtol=1e-3)
    assert not any("identified" in text for text in model.report_.warnings)
    assert model.identifiability(data) == found
    assert "rank 7 of 7" in dict(model.report_.lines())["information"]


@pytest.mark.filterwarnings("ignore:The fit stopped")
@pytest.mark.parametrize("seed", range(4))
def test_tosses_of_one_coin_do_not_determine_three_states(seed: int) -> None:
    """The likelihood is that of one state, in many ways: no parameter has a small error."""
    data = [list(row) for row in np.random.default_rng(seed).integers(0, 2, (100, 30))]
    model = HMM(3, sf.Categorical(), max_iter=1000).fit(data)
    found = model.report_.certificate.curvature
    assert found is not None
    assert found.point in ("flat", "saddle")
    assert found.rank < found.size
    assert any("not identified" in text or "saddle" in text for text in model.report_.warnings)
    errors = model.standard_errors_of(data)
    for array in (errors["transitions"], errors["emissions"]["probabilities"]):
        assert not np.isfinite(array).any()


def test_sequences_of_one_step_say_nothing_about_transitions() -> None:
    data = [[int(k)] for k in np.random.default_rng(0).integers(0, 3, 300)]
    model = HMM(2, sf.Categorical(), prior=None).fit(data)
    found = model.report_.certificate.curvature
    assert found is not None
    assert (found.rank, found.size, found.point) == (2, 7, "flat")  # Three shares of symbols have two free numbers.
    assert {"P(0 -> 1) (+)", "P(1 -> 0) (+)"} <= set(found.flat)
    assert len(found.flat) == 5
    held = HMM(2, sf.Categorical(), prior=2.0, random_state=3).fit(data)
    flat = held.report_.certificate.curvature
    assert flat is not None
    assert flat.rank > 2  # A prior determines what the data do not.


def test_states_that_begin_alike_stop_at_a_saddle() -> None:
    data = drawn(1, 40, 20)
    even = np.full((2, 3), 1 / 3)
    model = HMM(2, sf.Categorical(), initial=[0.5, 0.5], transitions=[[0.9, 0.1], [0.1, 0.9]], emissions=even).fit(data)
    assert np.allclose(*model.emission_probabilities_)
    found = model.report_.certificate.curvature
    assert found is not None
    assert found.point == "saddle"
    assert found.smallest < -0.01
    assert any("saddle" in text for text in model.report_.warnings)
    assert np.linalg.eigvalsh(-hessian(lambda t: log_likelihood(t, data), theta_of(model), 1e-4))[0] < 0


def test_starts_that_end_elsewhere_are_counted() -> None:
    rng = np.random.default_rng(4)
    data = [np.concatenate([rng.normal(m, 0.3, 12) for m in rng.permutation([0.0, 3.0, 6.0, 9.0])]) for _ in range(4)]
    model = HMM(4, sf.Normal(), n_init=12, tolerance=1e-4, max_iter=2000).fit(data)
    found = model.report_.certificate.curvature
    assert found is not None
    best = max(model.scores_)
    assert (found.reached, found.starts) == (sum(score > best - 1e-3 for score in model.scores_), 12)
    assert f"{found.reached} of 12" in dict(model.report_.lines())["starts"]


def test_a_dear_look_is_left_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    data = drawn(2, 20, 10)
    monkeypatch.setattr("suffice.models.hidden_markov.baum_welch.is_cheap", lambda *_: False)
    model = HMM(2, sf.Categorical(), tolerance=1e-4, max_iter=3000).fit(data)
    assert model.report_.certificate.curvature is None
    assert model.identifiability(data).size == 7
    with pytest.raises(sf.EstimateError, match=r"standard_errors_of\(sequences\)"):
        model.standard_errors_  # noqa: B018
    plain = sf.Report.from_dict(model.report_.to_dict())
    assert plain == model.report_


def test_a_probability_at_its_edge_has_no_error() -> None:
    """Zeros of a fit are no estimates with an error of 0."""
    data = [list("aaabbb"), list("aabbbb"), list("aaaabb")]
    model = HMM(2, sf.Categorical(), topology="left-right", initial=[1, 0], n_init=3, max_iter=5000).fit(data)
    errors = model.standard_errors_of(data)
    edge = model.emission_probabilities_ < 1e-6
    assert edge.any()
    assert np.isnan(errors["emissions"]["probabilities"][edge]).all()
    assert np.isnan(errors["transitions"][1, 0])


@pytest.mark.parametrize(
    ("law", "data"),
    [
        (sf.Poisson(), [[0, 0, 0, 0, 5, 6, 4, 7, 5, 0, 0, 0, 6, 5, 0, 0]]),
        (sf.Normal(), [[1.0] * 6 + [3.0, 4.5, 2.5, 3.5, 6.0] + [1.0] * 6 + [3.2, 4.1]]),
    ],
    ids=["rate 0", "variance at its floor"],
)
def test_a_law_at_its_edge_has_no_error(law: Any, data: Any) -> None:
    model = HMM(2, law, n_init=4).fit(data)
    (edge,) = [at for at, one in enumerate(model.emissions_) if min(one.parameters_.values()) < 1e-3]
    errors = model.standard_errors_of(data)["emissions"]
    values = errors["parameters"] if "parameters" in errors else errors["covariances"]
    assert np.isnan(values[edge]).all()
    assert np.isfinite(values[1 - edge]).all()
    assert model.report_.certificate.curvature is not None


def test_the_errors_of_the_fit_are_those_of_its_sequences(tmp_path: Any) -> None:
    data = drawn(0, 30, 12)
    model = HMM(2, sf.Categorical(), prior=0.5, tolerance=1e-6, max_iter=3000).fit(data)
    again = model.standard_errors_of(data)
    for name in ("initial", "transitions"):
        np.testing.assert_array_equal(model.standard_errors_[name], again[name])
    model.write(tmp_path / "model.json")
    kept = sf.read(tmp_path / "model.json").standard_errors_["emissions"]["probabilities"]
    np.testing.assert_array_equal(kept, again["emissions"]["probabilities"])


def test_the_errors_of_known_states_come_from_their_counts() -> None:
    words, paths = ["aabb", "abba", "babb"], ["XXYY", "YXXY", "XYYX"]
    model = HMM(["X", "Y"], sf.Categorical()).fit(words, paths)
    found, rows = model.standard_errors_["transitions"], model.transitions_
    n = model.statistics_.transitions.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, np.sqrt(rows * (1 - rows) / n), rtol=1e-5)
    np.testing.assert_allclose(found, model.standard_errors_of(words, paths)["transitions"], rtol=1e-12)
