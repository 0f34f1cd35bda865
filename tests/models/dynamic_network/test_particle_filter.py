"""The particle filter against exact answers: Kalman's and the interface's, and all paths of a switching system."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf

COUNT = 20_000
#: Four standard errors of a share of one half, of particles half of which count.
AWAY = 4 * 0.5 / np.sqrt(COUNT / 2)

HMM: Any = {
    ("h", 0): [0.6, 0.4],
    "h": [[0.8, 0.2], [0.3, 0.7]],
    "y": ([[0.0], [2.0]], [1.0, 0.5]),
}


def hidden() -> sf.DynamicBayesianNetwork:
    return sf.DynamicBayesianNetwork([(("h", -1), "h"), ("h", "y")], hidden={"h": 2}, states={"y": "real"}, fixed=HMM)


def test_states_are_those_of_the_exact_filter() -> None:
    series = {"y": [0.3, 1.8, None, 0.9, 2.5, 0.1, None]}
    exact, drawn = hidden().filter(series), hidden().filter(series, engine="sampling", n=COUNT, random_state=1)
    assert set(drawn) == {"h", "y"}
    assert drawn["h"] == pytest.approx(exact["h"], abs=AWAY)
    assert drawn["y"].mean == pytest.approx(exact["y"].mean, abs=4 * AWAY)
    assert drawn["y"].quantile(0.5)[2] == pytest.approx(exact["y"].quantile(0.5)[2], abs=0.1)
    ahead = hidden().forecast(series, 3, engine="sampling", n=COUNT, random_state=2)
    assert ahead["h"] == pytest.approx(hidden().forecast(series, 3)["h"], abs=AWAY)
    two = hidden().filter([series, {"y": [2.0]}], "h", engine="sampling", n=COUNT, random_state=1)
    assert two[1]["h"] == pytest.approx(hidden().filter({"y": [2.0]}, "h")["h"], abs=AWAY)
    under = hidden().filter(series, "h", do={("h", 2): 1}, engine="sampling", n=COUNT, random_state=3)["h"]
    assert under == pytest.approx(hidden().filter(series, "h", do={("h", 2): 1})["h"], abs=AWAY)


SLOPES, NOISE, MOVES = (0.9, -0.5), (0.2, 1.0), np.array([[0.85, 0.15], [0.3, 0.7]])


def switching() -> sf.DynamicBayesianNetwork:
    """A hidden number whose law of motion switches, seen with noise."""
    return sf.DynamicBayesianNetwork(
        [(("s", -1), "s"), (("x", -1), "x"), ("s", "x"), ("x", "y")],
        hidden={"s": 2, "x": "real"},
        states={"y": "real"},
        fixed={
            ("s", 0): [0.5, 0.5],
            "s": MOVES,
            ("x", 0): ([[0.0], [0.0]], [1.0, 1.0]),
            "x": ([[0.0, SLOPES[0]], [0.5, SLOPES[1]]], list(NOISE)),
            "y": ([0.0, 1.0], 0.3),
        },
    )


def all_paths(seen: list[float]) -> tuple[float, float, float]:
    """P(the second law in the last slice), mean and variance of the hidden number there, by a Kalman filter a path."""
    total, parts = 0.0, []
    for path in itertools.product((0, 1), repeat=len(seen)):
        weight, mean, variance = 0.5 * np.prod([MOVES[a, b] for a, b in itertools.pairwise(path)]), 0.0, 1.0
        for t, value in enumerate(seen):
            if t:
                mean = SLOPES[path[t]] * mean + (0.5 if path[t] else 0.0)
                variance = SLOPES[path[t]] ** 2 * variance + NOISE[path[t]]
            weight *= stats.norm.pdf(value, mean, np.sqrt(variance + 0.3))
            gain = variance / (variance + 0.3)
            mean, variance = mean + gain * (value - mean), (1 - gain) * variance
        total += weight
        parts.append((weight, path[-1], mean, variance))
    centre = sum(w * m for w, _, m, _ in parts) / total
    spread = sum(w * (v + (m - centre) ** 2) for w, _, m, v in parts) / total
    return sum(w * s for w, s, _, _ in parts) / total, centre, spread


def test_switching_systems_are_answered_approximately() -> None:
    seen = [0.5, 0.9, -0.4, 1.1, 0.2, 0.1]
    with pytest.raises(sf.OptionError, match="engine='sampling'"):
        switching().filter({"y": seen})
    drawn = switching().filter({"y": seen}, engine="sampling", n=COUNT, random_state=0)
    share, centre, spread = all_paths(seen)
    assert drawn["s"][-1, 1] == pytest.approx(share, abs=AWAY)
    assert drawn["x"].mean[-1] == pytest.approx(centre, abs=2 * AWAY)
    assert drawn["x"].variance[-1] == pytest.approx(spread, abs=2 * AWAY)


def test_interfaces_of_any_width() -> None:
    """Fourteen chains, each with a reading of its own: their answers are those of each alone."""
    chains = range(14)
    arcs: list[Any] = [((f"h{i}", -1), f"h{i}") for i in chains] + [(f"h{i}", f"y{i}") for i in chains]
    move, emit = [[0.8, 0.2], [0.3, 0.7]], [[0.7, 0.3], [0.4, 0.6]]
    wide = sf.DynamicBayesianNetwork(
        arcs,
        hidden={f"h{i}": 2 for i in chains},
        states={f"y{i}": [0, 1] for i in chains},
        fixed={
            name: table
            for i in chains
            for name, table in ((f"h{i}", move), ((f"h{i}", 0), [0.5, 0.5]), (f"y{i}", emit))
        },
    )
    rng = np.random.default_rng(0)
    series = {f"y{i}": rng.integers(0, 2, 4).tolist() for i in chains}
    with pytest.raises(sf.SizeError, match="engine='sampling'"):
        wide.filter(series)
    drawn = wide.filter(series, engine="sampling", n=COUNT, random_state=0)
    one = sf.DynamicBayesianNetwork.hmm(
        2, "y", node="h", states={"y": [0, 1]}, fixed={"h": move, ("h", 0): [0.5, 0.5], "y": emit}
    )
    for i in chains:
        exact = one.filter({"y": series[f"y{i}"]})["h"]
        assert drawn[f"h{i}"] == pytest.approx(exact, abs=3 * AWAY)


def test_what_particles_cannot_say() -> None:
    with pytest.raises(sf.OptionError, match="n= is about the particles"):
        hidden().filter({"y": [1.0]}, n=100)
    with pytest.raises(sf.OptionError, match="engine"):
        hidden().filter({"y": [1.0]}, engine="particles")  # type: ignore[arg-type]
    with pytest.warns(sf.SamplingWarning, match="count as"):
        hidden().filter({"y": [9.0]}, engine="sampling", n=50, random_state=0)
    sure = sf.DynamicBayesianNetwork.hmm(
        2, "y", states={"y": [0, 1]}, fixed={"state": np.eye(2), ("state", 0): [1.0, 0.0], "y": np.eye(2)}
    )
    with pytest.raises(sf.EstimateError, match="No particle agrees"):
        sure.filter({"y": [0, 1]}, engine="sampling", n=50, random_state=0)
