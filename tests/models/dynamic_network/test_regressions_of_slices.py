"""Generalised linear models beside hidden states: EM against a recursion of one's own and a generic optimiser."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, gammaln, logit

import suffice as sf

STEPS: dict[str, Any] = {"tolerance": 1e-9, "max_iter": 3000}


def recursion(start: Any, moves: Any, logs: Any) -> float:
    """The log-likelihood of one series by the forward recursion; moves (slices, 2, 2), logs (slices, 2)."""
    ahead, total = start * np.exp(logs[0]), 0.0
    for t in range(1, len(logs)):
        total += np.log(ahead.sum())
        ahead = (ahead / ahead.sum()) @ moves[t] * np.exp(logs[t])
    return float(total + np.log(ahead.sum()))


def highest(score: Any, begin: Any, many: list[dict[str, Any]]) -> float:
    """What a generic optimiser climbs to."""
    climb: Any = optimize.minimize
    return -float(climb(lambda vector: -score(vector, many), begin, method="BFGS").fun)


def driven(rng: np.random.Generator, steps: int) -> dict[str, Any]:
    u, state, y = rng.normal(size=steps), 0, np.zeros(steps)
    for t in range(steps):
        state = int(rng.random() < expit(-1.0 + 2.0 * state + 1.5 * u[t]))
        y[t] = rng.normal(3.0 * state, 1.0)
    return {"u": u, "y": y}


def driven_score(vector: Any, many: list[dict[str, Any]]) -> float:
    """Transitions by a logistic regression on the state before and the input; normal emissions of equal start."""
    intercept, stay, slope, low, high, first, second = vector
    total = 0.0
    for one in many:
        up = np.stack([expit(intercept + stay * before + slope * one["u"]) for before in (0, 1)], axis=1)
        moves = np.stack([1 - up, up], axis=2)
        logs = stats.norm.logpdf(one["y"][:, None], [low, high], np.sqrt([first, second]))
        total += recursion(np.array([0.5, 0.5]), moves, logs)
    return total


def test_transitions_may_follow_real_inputs() -> None:
    rng = np.random.default_rng(4)
    many = [driven(rng, 60) for _ in range(4)]
    arcs: Any = [(("h", -1), "h"), ("u", "h"), ("h", "y")]
    net = sf.DynamicBayesianNetwork(
        arcs,
        first=[("h", "y")],
        inputs="u",
        hidden={"h": 2},
        nodes={"h": sf.GLM("binomial", tolerance=1e-12), ("h", 0): "table"},
        fixed={("h", 0): [0.5, 0.5]},
        tied=[["y", ("y", 0)]],
        start={"y": ([[0.0], [3.0]], [1.0, 1.0]), ("y", 0): ([[0.0], [3.0]], [1.0, 1.0])},
        **STEPS,
    ).fit(many)
    glm, emission = net.node("h"), net.table("y").values
    vector = np.array([glm.intercept_, *np.ravel(np.asarray(list(glm.coefficients_))), *emission.T.ravel()])
    assert net.log_likelihood_ == pytest.approx(driven_score(vector, many), abs=1e-8)
    slope = optimize.approx_fprime(vector, driven_score, 1e-6, many)
    assert np.abs(slope).max() < 2e-3
    assert highest(driven_score, vector, many) - net.log_likelihood_ < 1e-5
    # Posteriors: the derivative of the log-likelihood by a bonus for a state in one slice.
    smoothed = net.smooth(many[0])["h"]
    one = many[0]
    up = np.stack([expit(vector[0] + vector[1] * b + vector[2] * one["u"]) for b in (0, 1)], axis=1)
    logs: Any = stats.norm.logpdf(one["y"][:, None], vector[3:5], np.sqrt(vector[5:]))

    def with_bonus(bonus: float) -> float:
        changed = logs.copy()
        changed[7, 1] += bonus
        return recursion(np.array([0.5, 0.5]), np.stack([1 - up, up], axis=2), changed)

    assert smoothed[7, 1] == pytest.approx((with_bonus(1e-5) - with_bonus(-1e-5)) / 2e-5, abs=1e-8)
    ahead = net.forecast(one, 1, inputs={"u": [0.7]})["h"][0, 1]
    last = expit(vector[0] + vector[1] * np.array([0, 1]) + vector[2] * 0.7)
    assert ahead == pytest.approx(smoothed[-1] @ last, abs=1e-12)


def counted(rng: np.random.Generator, steps: int) -> dict[str, Any]:
    u, state, n = rng.normal(size=steps), 0, []
    for t in range(steps):
        state = state if rng.random() < 0.85 else 1 - state
        n.append(float(rng.poisson(np.exp(0.3 + 1.4 * state + 0.4 * u[t]))))
    return {"u": u, "n": np.array(n)}


def counted_score(vector: Any, many: list[dict[str, Any]]) -> float:
    first, stay, leave, intercept, high, slope = vector
    moves = np.array([[1 - expit(stay), expit(stay)], [1 - expit(leave), expit(leave)]])
    total = 0.0
    for one in many:
        logits = intercept + np.array([0.0, high]) + slope * one["u"][:, None]
        logs = one["n"][:, None] * logits - np.exp(logits) - gammaln(one["n"] + 1)[:, None]
        logs = np.where(np.isnan(logs), 0.0, logs)
        total += recursion(np.array([1 - expit(first), expit(first)]), [moves] * len(logs), logs)
    return total


@pytest.mark.parametrize("holes", [False, True])
def test_counts_may_follow_hidden_states_and_inputs(holes: bool) -> None:
    rng = np.random.default_rng(7)
    many = [counted(rng, 50) for _ in range(4)]
    if holes:
        for one in many:
            one["n"][10:14] = np.nan
    net = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("h", "n"), ("u", "n")],
        inputs="u",
        hidden={"h": 2},
        states={"n": "count", "u": "real"},
        nodes={"n": sf.GLM(family=sf.Poisson(), tolerance=1e-12)},
        start={("h", 0): [0.5, 0.5], "h": [[0.8, 0.2], [0.2, 0.8]]},
        **STEPS,
    ).fit(many)
    glm = net.node("n")
    moves, first = net.table("h").values, net.table(("h", 0)).values
    edge = float(np.clip(first[1], 1e-9, 1 - 1e-9))
    vector = np.array([*logit(np.array([edge, *moves[:, 1]])), glm.intercept_, *list(glm.coefficients_)])
    assert net.log_likelihood_ == pytest.approx(counted_score(vector, many), abs=1e-6)
    slope = optimize.approx_fprime(vector, counted_score, 1e-6, many)
    assert np.abs(slope[1:]).max() < 5e-3
    assert highest(counted_score, vector, many) - net.log_likelihood_ < 1e-4


def test_numbers_on_which_others_depend_have_to_be_seen() -> None:
    rng = np.random.default_rng(7)
    one = counted(rng, 30)
    one["n"][3] = np.nan
    net = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("h", "n"), (("n", -1), "n")],
        hidden={"h": 2},
        states={"n": "count"},
        nodes={"n": sf.GLM(family=sf.Poisson())},
    )
    with pytest.raises(sf.OptionError, match="GLM node"):
        net.fit({"n": one["n"]})
