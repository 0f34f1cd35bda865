"""Linear-Gaussian networks through time, against a textbook Kalman filter and smoother, and statsmodels'."""

import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(8)
#: x_0 ~ N(M, V); x_t = A x_{t-1} + B + N(0, Q); y_t = C x_t + D + N(0, R): two states, three observations.
M, V = np.array([0.5, -1.0]), np.array([2.0, 1.5])
A, B, Q = np.array([[0.9, 0.2], [-0.3, 0.7]]), np.array([0.1, 0.0]), np.array([0.3, 0.5])
C, D, R = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]]), np.array([0.0, 1.0, 0.3]), np.array([0.2, 0.4, 0.3])
ARCS = [
    *[((f"x{j}", -1), f"x{i}") for i in range(2) for j in range(2)],
    *[(f"x{j}", f"y{i}") for i in range(3) for j in range(2)],
]


def system() -> sf.DynamicBayesianNetwork:
    tables: dict[Any, Any] = {(f"x{i}", 0): ([M[i]], V[i]) for i in range(2)}
    tables |= {f"x{i}": ([B[i], *A[i]], Q[i]) for i in range(2)}
    tables |= {f"y{i}": ([D[i], *C[i]], R[i]) for i in range(3)}
    states = {f"y{i}": "real" for i in range(3)}
    return sf.DynamicBayesianNetwork(ARCS, hidden={"x0": "real", "x1": "real"}, states=states, fixed=tables)


def drawn(length: int, share: float) -> np.ndarray:
    x, rows = M + np.sqrt(V) * RNG.normal(size=2), []
    for t in range(length):
        if t:
            x = A @ x + B + np.sqrt(Q) * RNG.normal(size=2)
        rows.append(C @ x + D + np.sqrt(R) * RNG.normal(size=3))
    y = np.array(rows)
    y[RNG.random(y.shape) < share] = np.nan
    return y


def as_table(y: np.ndarray) -> dict[str, np.ndarray]:
    return {f"y{i}": y[:, i] for i in range(3)}


def textbook(y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Log-likelihood, filtered and smoothed means and covariances: Kalman, Rauch, Tung and Striebel."""
    steps, log = len(y), 0.0
    ahead, filtered = [], []
    mean, spread = M, np.diag(V)
    for t in range(steps):
        if t:
            mean, spread = A @ mean + B, A @ spread @ A.T + np.diag(Q)
        ahead.append((mean, spread))
        seen = ~np.isnan(y[t])
        c, v = C[seen], y[t, seen] - D[seen] - C[seen] @ mean
        f = c @ spread @ c.T + np.diag(R[seen])
        log -= 0.5 * (v @ np.linalg.solve(f, v) + np.linalg.slogdet(f)[1] + len(v) * np.log(2 * np.pi))
        gain = spread @ c.T @ np.linalg.inv(f)
        mean, spread = mean + gain @ v, spread - gain @ f @ gain.T
        filtered.append((mean, spread))
    smoothed = [filtered[-1]]
    for t in range(steps - 2, -1, -1):
        back = filtered[t][1] @ A.T @ np.linalg.inv(ahead[t + 1][1])
        later, wide = smoothed[0]
        smoothed.insert(
            0,
            (
                filtered[t][0] + back @ (later - ahead[t + 1][0]),
                filtered[t][1] + back @ (wide - ahead[t + 1][1]) @ back.T,
            ),
        )
    means = [np.array([m for m, _ in part]) for part in (filtered, smoothed)]
    spreads = [np.array([np.diag(s) for _, s in part]) for part in (filtered, smoothed)]
    return log, means[0], spreads[0], means[1], spreads[1]


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_linear_system_is_filtered_and_smoothed_as_in_the_textbook(share: float) -> None:
    net, many = system(), [drawn(length, share) for length in (1, 25, 7, 60)]
    tables = [as_table(y) for y in many]
    scores, filtered, smoothed = net.score_samples(tables), net.filter(tables), net.smooth(tables)
    for number, y in enumerate(many):
        log, fm, fv, sm, sv = textbook(y)
        assert scores[number] == pytest.approx(log, abs=1e-10)
        for i in range(2):
            assert filtered[number][f"x{i}"] == pytest.approx(np.column_stack([fm[:, i], fv[:, i]]), abs=1e-10)
            assert smoothed[number][f"x{i}"] == pytest.approx(np.column_stack([sm[:, i], sv[:, i]]), abs=1e-10)


def test_what_follows_is_normal_and_the_mode_is_the_mean() -> None:
    net, y = system(), drawn(20, 0.2)
    _, fm, _, sm, _ = textbook(y)
    ahead = net.forecast(as_table(y), 2)
    later = A @ fm[-1] + B
    assert ahead["x1"][0, 0] == pytest.approx(later[1], abs=1e-10)
    assert ahead["y1"][1, 0] == pytest.approx(C[1] @ (A @ later + B) + D[1], abs=1e-10)
    assert net.map_query(as_table(y))["x0"] == pytest.approx(sm[:, 0], abs=1e-10)


def test_the_filter_is_that_of_statsmodels() -> None:
    statespace = pytest.importorskip("statsmodels.tsa.statespace.kalman_smoother")
    y = drawn(80, 0.2)
    model = statespace.KalmanSmoother(k_endog=3, k_states=2, k_posdef=2)
    model.bind(np.asfortranarray(y.T))
    model["design"], model["obs_intercept"], model["obs_cov"] = C, D[:, None], np.diag(R)
    model["transition"], model["state_intercept"], model["selection"] = A, B[:, None], np.eye(2)
    model["state_cov"] = np.diag(Q)
    model.initialize_known(M, np.diag(V))
    theirs, mine = model.smooth(), system().smooth(as_table(y))
    assert system().score_samples(as_table(y))[0] == pytest.approx(theirs.llf, abs=1e-10)
    for i in range(2):
        assert mine[f"x{i}"][:, 0] == pytest.approx(theirs.smoothed_state[i], abs=1e-10)
        assert mine[f"x{i}"][:, 1] == pytest.approx(theirs.smoothed_state_cov[i, i], abs=1e-10)


def quietly(model: Any, data: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data)


def test_em_of_a_linear_system_is_that_of_the_textbook() -> None:
    many = [drawn(30, 0.0)[:, :1] for _ in range(4)]
    start = {("x", 0): ([0.0], 1.0), "x": ([0.1, 0.5], 0.8), "y": ([0.2, 0.9], 0.5)}
    net = sf.DynamicBayesianNetwork(
        [(("x", -1), "x"), ("x", "y")], hidden={"x": "real"}, start=start, max_iter=3, tolerance=1e-300
    )
    quietly(net, [{"y": y[:, 0]} for y in many])

    m, v, (b, a), q, (d, c), r = 0.0, 1.0, (0.1, 0.5), 0.8, (0.2, 0.9), 0.5
    for _ in range(3):
        firsts, moves, seen = [], [], []
        for y in many:
            steps = len(y)
            # The whole posterior at once, from the joint precision of all states.
            precision, linear = np.zeros((steps, steps)), np.zeros(steps)
            precision[0, 0] += 1 / v
            linear[0] += m / v
            for t in range(steps):
                precision[t, t] += c**2 / r
                linear[t] += c * (y[t, 0] - d) / r
                if t:
                    precision[t - 1 : t + 1, t - 1 : t + 1] += np.array([[a * a, -a], [-a, 1.0]]) / q
                    linear[t - 1 : t + 1] += np.array([-a * b, b]) / q
            spread = np.linalg.inv(precision)
            mean = spread @ linear
            firsts.append((mean[0], spread[0, 0]))
            for t in range(1, steps):
                moves.append((mean[t - 1], mean[t], spread[t - 1, t - 1], spread[t - 1, t], spread[t, t]))
            seen += [(mean[t], y[t, 0], spread[t, t]) for t in range(steps)]
        m = np.mean([one for one, _ in firsts])
        v = np.mean([(one - m) ** 2 + wide for one, wide in firsts])
        e = np.array(moves)
        gram = np.array([[len(e), e[:, 0].sum()], [e[:, 0].sum(), (e[:, 0] ** 2 + e[:, 2]).sum()]])
        cross = np.array([e[:, 1].sum(), (e[:, 0] * e[:, 1] + e[:, 3]).sum()])
        b, a = np.linalg.solve(gram, cross)
        q = ((e[:, 1] ** 2 + e[:, 4]).sum() - np.array([b, a]) @ cross) / len(e)
        s = np.array(seen)
        gram = np.array([[len(s), s[:, 0].sum()], [s[:, 0].sum(), (s[:, 0] ** 2 + s[:, 2]).sum()]])
        cross = np.array([s[:, 1].sum(), (s[:, 0] * s[:, 1]).sum()])
        d, c = np.linalg.solve(gram, cross)
        r = ((s[:, 1] ** 2).sum() - np.array([d, c]) @ cross) / len(s)
    assert net.table(("x", 0)).values == pytest.approx([m, v], abs=1e-10)
    assert net.table("x").values == pytest.approx([b, a, q], abs=1e-10)
    assert net.table("y").values == pytest.approx([d, c, r], abs=1e-10)


@pytest.mark.parametrize("first", [None, [("x", "y")]])
def test_gaps_in_an_autoregression_are_learned_as_in_the_network_of_all_slices(first: Any) -> None:
    rng, length, count = np.random.default_rng(3), 4, 25
    arcs = [(("x", -1), "x"), (("x", -2), "x"), ("x", "y"), (("y", -1), "y"), ("k", "y")]
    series = []
    for _ in range(count):
        x, y = rng.normal(size=length).cumsum(), rng.normal(size=length)
        x[rng.random(length) < 0.2] = np.nan
        y[rng.random(length) < 0.2] = np.nan
        series.append({"x": x, "y": y, "k": rng.choice(["a", "b"], length)})
    net = sf.DynamicBayesianNetwork(arcs, first=first, max_iter=4, tolerance=1e-300)
    quietly(net, series)
    parents: dict[Any, list[Any]] = {}
    groups: dict[Any, list[Any]] = {}
    for t in range(length):
        for node in ("k", "x", "y"):
            family = (node, t) if (node, t) in net.tables_ else node
            parents[node, t] = [
                (p[0], p[1] if p[1] >= 0 else t + p[1]) if isinstance(p, tuple) else (p, t) for p in net.parents(family)
            ]
            groups.setdefault(family, []).append((node, t))
    fitted = net.unroll(length)
    rows = {(n, t): [one[n][t] for one in series] for n in ("k", "x", "y") for t in range(length)}
    assert net.score_samples(series) == pytest.approx(fitted.score_samples(rows), abs=1e-9)
    whole = sf.BayesianNetwork(
        parents,
        tied=[group for group in groups.values() if len(group) > 1],
        start=fitted,
        max_iter=1,
        tolerance=1e-300,
    )
    again = net.clone().set_params(start=net, max_iter=1)
    quietly(whole, rows)
    quietly(again, series)
    for family, places in groups.items():
        assert again.table(family).values == pytest.approx(whole.table(places[0]).values, abs=1e-8)


def test_well_known_structures_have_constructors() -> None:
    hmm = sf.DynamicBayesianNetwork.hmm(["lo", "hi"], "y", prior=1.0)
    assert hmm.tables_ == (("state", 0), "state", "y")
    assert hmm.get_params()["prior"] == 1.0
    assert hmm.get_params()["hidden"] == {"state": ["lo", "hi"]}
    factorial = sf.DynamicBayesianNetwork.factorial_hmm([2, 3], ["y", "z"], node="h")
    assert factorial.parents("h1") == (("h1", -1),)
    assert factorial.parents("z") == ("h0", "h1")
    linear = sf.DynamicBayesianNetwork.linear_system(2, ["y"])
    assert linear.parents("state1") == (("state0", -1), ("state1", -1))
    assert linear.get_params()["hidden"] == {"state0": "real", "state1": "real"}
    y = drawn(30, 0.0)
    quietly(linear.set_params(max_iter=2), [{"y": y[:, 0]}, {"y": y[:, 1]}])
    assert (np.diff(linear.history_) > 0).all()
    with pytest.raises(sf.OptionError, match="no nodes"):
        sf.DynamicBayesianNetwork.factorial_hmm([], "y")


def test_numbers_of_another_kind_are_refused_by_name() -> None:
    glm = {"y": sf.GLM(family=sf.Poisson())}
    net = sf.DynamicBayesianNetwork.linear_system(1, "y", states={"y": "count"}, nodes=glm)
    with pytest.raises(sf.OptionError, match="no closed form"):
        net.fit({"y": [1, 0, 4, 2]})


def test_a_linear_system_is_learned_and_judged() -> None:
    rng = np.random.default_rng(1)
    series = []
    for _ in range(20):
        level = rng.normal(0.0, 3.0, size=40)
        for t in range(1, 40):
            level[t] = 0.9 * level[t - 1] + rng.normal()
        series.append({"a": level + 0.5 * rng.normal(size=40), "b": 2 * level + rng.normal(size=40)})
    given = {"a": ([0.0, 1.0], 0.25)}
    net = sf.DynamicBayesianNetwork(
        [(("x", -1), "x"), ("x", "a"), ("x", "b")], hidden={"x": "real"}, fixed=given, tolerance=1e-5
    ).fit(series)
    assert net.converged_
    assert "Kalman" in str(net.report_)
    assert net.table("x").values[1] == pytest.approx(0.9, abs=0.1)
    assert net.table("b").values[1] == pytest.approx(2.0, abs=0.15)
