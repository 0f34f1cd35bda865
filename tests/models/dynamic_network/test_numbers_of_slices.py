"""Numbers that are missing or lie ahead beside hidden states, against listing every path of states."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import suffice as sf

START, MOVES = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.3, 0.7]])
#: By state before and state: intercept, slope of the dose, variance; in the first slice by state alone.
LATER = np.array([[[0.0, 1.0, 0.5], [2.0, -1.0, 1.0]], [[-1.0, 0.5, 0.2], [4.0, 0.0, 2.0]]])
FIRST = np.array([[0.5, 1.0, 0.5], [3.0, -1.0, 1.5]])
DOSES = np.array([0.3, -1.0, 0.5, 2.0, 1.0, -0.4])


def network() -> sf.DynamicBayesianNetwork:
    """A reading that depends on the mode, the mode before, and a dose that is given."""
    return sf.DynamicBayesianNetwork(
        [(("mode", -1), "mode"), (("mode", -1), "x"), ("mode", "x"), ("dose", "x")],
        inputs="dose",
        hidden={"mode": ["on", "off"]},
        states={"x": "real", "dose": "real"},
        fixed={
            ("mode", 0): START,
            "mode": MOVES,
            ("x", 0): (FIRST[:, :2], FIRST[:, 2]),
            "x": (LATER[..., :2], LATER[..., 2]),
        },
    )


def terms(path: tuple[int, ...], t: int) -> tuple[float, float]:
    """Mean and variance of the reading of a slice under a path."""
    row = FIRST[path[0]] if t == 0 else LATER[path[t - 1], path[t]]
    return row[0] + row[1] * DOSES[t], row[2]


def paths(readings: list[float | None], slices: int) -> dict[tuple[int, ...], float]:
    """By path its probability given the readings."""
    weights = {}
    for path in itertools.product((0, 1), repeat=slices):
        weight = START[path[0]] * np.prod([MOVES[a, b] for a, b in itertools.pairwise(path)])
        for t, value in enumerate(readings):
            if value is not None:
                mean, variance = terms(path, t)
                weight *= stats.norm.pdf(value, mean, np.sqrt(variance))
        weights[path] = weight
    total = sum(weights.values())
    return {path: weight / total for path, weight in weights.items()}


def moments(weights: dict[tuple[int, ...], float], t: int) -> tuple[float, float]:
    pairs = [(weight, *terms(path, t)) for path, weight in weights.items()]
    mean = sum(w * m for w, m, _ in pairs)
    return mean, sum(w * (v + (m - mean) ** 2) for w, m, v in pairs)


READINGS: list[float | None] = [0.4, None, 2.5, None]
SERIES: dict[str, Any] = {"x": READINGS, "dose": DOSES[:4]}


def test_missing_numbers_are_mixtures_over_the_paths() -> None:
    net, exact = network(), paths(READINGS, 4)
    answer = net.smooth(SERIES)
    assert set(answer) == {"mode", "x"}
    for t, reading in enumerate(READINGS):
        expected = (reading, 0.0) if reading is not None else moments(exact, t)
        assert np.asarray(answer["x"])[t] == pytest.approx(expected, abs=1e-12)
    filtered = net.filter(SERIES, "x")["x"]
    assert np.asarray(filtered)[1] == pytest.approx(moments(paths(READINGS[:1], 2), 1), abs=1e-12)
    assert np.asarray(filtered[3:])[0] == pytest.approx(moments(paths(READINGS, 4), 3), abs=1e-12)
    assert filtered[3].weights.sum() == pytest.approx(1.0, abs=1e-14)


def test_quantiles_are_those_of_the_mixture() -> None:
    net, exact = network(), paths(READINGS, 4)

    def share(value: float, t: int) -> float:
        return sum(w * stats.norm.cdf(value, *_normal(path, t)) for path, w in exact.items())

    def _normal(path: tuple[int, ...], t: int) -> tuple[float, float]:
        mean, variance = terms(path, t)
        return mean, np.sqrt(variance)

    answer = net.smooth(SERIES, "x")["x"]
    for level in (0.025, 0.5, 0.9):
        for t in (1, 3):
            exact_one = optimize.brentq(lambda value, t=t, level=level: share(value, t) - level, -20, 20, xtol=1e-13)
            assert answer.quantile(level)[t] == pytest.approx(exact_one, abs=1e-10)
        assert answer.quantile(level)[2] == 2.5
    assert answer.cdf(1.0)[3] == pytest.approx(share(1.0, 3), abs=1e-13)
    with pytest.raises(sf.OptionError, match="between 0 and 1"):
        answer.quantile(1.0)


def test_forecasts_tell_numbers_that_will_be_seen() -> None:
    ahead = network().forecast(SERIES, 2, inputs={"dose": DOSES[4:]})
    exact = paths([*READINGS, None, None], 6)
    assert set(ahead) == {"mode", "x"}
    assert np.asarray(ahead["x"]) == pytest.approx(np.array([moments(exact, 4), moments(exact, 5)]), abs=1e-12)
    on = [sum(weight for path, weight in exact.items() if path[t] == 0) for t in (4, 5)]
    assert ahead["mode"][:, 0] == pytest.approx(on, abs=1e-12)


def test_best_paths_come_with_the_numbers() -> None:
    net, exact = network(), paths(READINGS, 4)
    best = max(exact, key=exact.__getitem__)
    answer = net.map_query(SERIES)
    assert answer["mode"].tolist() == [["on", "off"][state] for state in best]
    expected = [terms(best, t)[0] if reading is None else reading for t, reading in enumerate(READINGS)]
    assert answer["x"] == pytest.approx(expected, abs=1e-12)


def test_several_series_are_answered_as_each_alone() -> None:
    net = network()
    other: dict[str, Any] = {"x": [None, 1.0], "dose": DOSES[2:4]}
    together: list[dict[str, Any]] = net.smooth([SERIES, other], ["x", "mode"])
    for one, series in zip(together, [SERIES, other], strict=True):
        alone = net.smooth(series, ["x", "mode"])
        assert np.asarray(one["x"]) == pytest.approx(np.asarray(alone["x"]), abs=1e-13)
        assert len(one["x"]) == len(series["x"])


def test_nodes_that_are_no_regression_are_left_out_by_default_and_refused_by_name() -> None:
    rng = np.random.default_rng(0)
    rows = {"h": rng.choice(["a", "b"], 60).tolist(), "n": rng.poisson(2.0, 60)}
    net = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("h", "n")],
        states={"n": "count"},
        nodes={"n": sf.GLM(family=sf.Poisson())},
        prior={"h": 1.0},
    ).fit(rows)
    gone = {"h": ["a", None, "b"], "n": [1, None, 2]}
    assert set(net.smooth(gone)) == {"h"}
    with pytest.raises(sf.OptionError, match="'n' holds numbers and is no linear-Gaussian node"):
        net.smooth(gone, "n")
