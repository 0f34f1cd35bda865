"""Random Bayesian networks: own counts, regressions, enumeration of every joint state, and generic ascent from EM."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

import suffice as sf
from benchmarks.audit.oracle import agreement, fitted, highest, search, shortfall, stationary, verdict
from benchmarks.audit.record import Coverage, Existence, Problem, Record, Sampled
from benchmarks.audit.regressions import Regression, recedes

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
#: Parents by node, parents first; and the number of states of each node.
Shape = tuple[dict[str, list[str]], dict[str, int]]


def _shape(rng: np.random.Generator, nodes: int, states: int, most: int = 2) -> Shape:
    """A random acyclic structure."""
    names = [f"v{k}" for k in range(nodes)]
    parents = {
        name: [str(one) for one in rng.choice(names[:k], int(rng.integers(0, min(k, most) + 1)), replace=False)]
        for k, name in enumerate(names)
    }
    return parents, {name: int(rng.integers(2, states + 1)) for name in names}


def _tables(rng: np.random.Generator, shape: Shape, concentration: float = 1.0) -> dict[str, Floats]:
    parents, states = shape
    return {
        name: rng.dirichlet(np.full(states[name], concentration), tuple(states[p] for p in parents[name]))
        for name in parents
    }


def _draw(rng: np.random.Generator, shape: Shape, tables: Mapping[str, Floats], n: int) -> dict[str, Codes]:
    parents, states = shape
    rows: dict[str, Codes] = {}
    for name in parents:
        p = tables[name][tuple(rows[one] for one in parents[name])] if parents[name] else np.tile(tables[name], (n, 1))
        rows[name] = np.minimum((rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1), states[name] - 1)
    return rows


def _declared(shape: Shape) -> dict[str, list[int]]:
    return {name: list(range(count)) for name, count in shape[1].items()}


def _counts(shape: Shape, rows: Mapping[str, Codes]) -> dict[str, Floats]:
    parents, states = shape
    found = {}
    for name in parents:
        family = [*parents[name], name]
        found[name] = np.zeros([states[one] for one in family])
        np.add.at(found[name], tuple(rows[one] for one in family), 1.0)
    return found


# -- tables ------------------------------------------------------------------------------------------------------------


def _complete_tables(rng: np.random.Generator) -> Iterator[Record]:
    """Counts and pseudo-counts: each row of a table has its optimum by Gibbs' inequality."""
    shape, n = _shape(rng, int(rng.integers(2, 5)), 3), int(rng.choice([4, 15, 60, 300]))
    rows = _draw(rng, shape, _tables(rng, shape), n)
    counts = _counts(shape, rows)
    seen = all(bool(np.all((table > 0) | (table.sum(axis=-1, keepdims=True) == 0))) for table in counts.values())
    weight = float(rng.choice([0.5, 1.5, 3.0]))
    for name, options, added in (
        ("BayesianNetwork tables", {}, 0.0),
        ("BayesianNetwork tables, mean", {"prior": weight}, weight),
        ("BayesianNetwork tables, MAP", {"prior": weight + 1, "estimate": "map"}, weight),
    ):
        net = fitted(sf.BayesianNetwork(shape[0], states=_declared(shape), **options), rows)
        yield verdict(name, net, seen or added > 0)
        reached = best = 0.0
        for node, table in counts.items():
            total = table + added
            reached += float(special.xlogy(total, net.table(node).values).sum())
            rest = np.maximum(total.sum(axis=-1, keepdims=True), 1e-300)
            best += float(special.xlogy(total, total / rest).sum())
        yield shortfall(name, net, reached, best, n)
    prior = fitted(sf.BayesianNetwork(shape[0], states=_declared(shape), prior=weight), rows)
    evidence = 0.0
    for table in counts.values():
        total = table + weight
        evidence += float(np.sum(special.gammaln(total) - special.gammaln(weight)))
        sums = special.gammaln(total.sum(axis=-1)) - special.gammaln(weight * table.shape[-1])
        evidence -= float(np.sum(sums))
    yield agreement("BayesianNetwork tables, log evidence", prior.report_.log_evidence, evidence, n, 1e-11)


def _table_errors(rng: np.random.Generator) -> Iterator[Record]:
    """Rows of known tables: how often estimate +- 1.96 errors holds one of their probabilities."""
    shape = _shape(rng, 3, 2)
    tables = {name: 0.2 + 0.6 * table for name, table in _tables(rng, shape).items()}
    tables = {name: table / table.sum(axis=-1, keepdims=True) for name, table in tables.items()}
    gaps = bool(rng.random() < 0.5)
    name = f"BayesianNetwork tables{', EM with gaps' if gaps else ''}, standard errors"
    covered = count = 0
    for _ in range(5):
        rows: dict[str, Any] = _draw(rng, shape, tables, 500)
        if gaps:
            rows = _with_gaps(rng, rows, 0.15)
        net = fitted(sf.BayesianNetwork(shape[0], states=_declared(shape)), rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors = net.standard_errors_
        node = f"v{rng.integers(3)}"
        where = tuple(int(rng.integers(size)) for size in tables[node].shape)
        error = float(errors[node].values[where])
        if np.isfinite(error):
            off = abs(float(net.table(node).values[where]) - float(tables[node][where]))
            covered, count = covered + int(off <= 1.96 * error), count + 1
    yield Coverage(name, covered, count)


# -- real nodes --------------------------------------------------------------------------------------------------------


def _regression_rest(y: Floats, x: Floats) -> tuple[float, float]:
    """Root mean squares of y about its mean and of what least squares leave, in columns of one size."""
    design = np.column_stack([np.ones(len(y)), x - x.mean(axis=0)]) if x.size else np.ones((len(y), 1))
    design = design / np.maximum(np.abs(design).max(axis=0), 1e-300)
    centred = y - y.mean()
    q, r, _ = _pivoted(design)
    rank = int(np.sum(np.abs(np.diag(r)) > 1e-13 * abs(r[0, 0])))
    rest = centred - q[:, :rank] @ (q[:, :rank].T @ centred)
    rest = rest - q[:, :rank] @ (q[:, :rank].T @ rest)
    return float(np.sqrt(np.mean(centred**2))), float(np.sqrt(np.mean(rest**2)))


def _pivoted(design: Floats) -> Any:
    from scipy.linalg import qr

    return qr(design, mode="economic", pivoting=True)


def _linear_gaussian(rng: np.random.Generator) -> Iterator[Record]:
    """Columns in any units, near others, too many, or explained without rest."""
    size = int(rng.integers(1, 4))
    n = int(rng.choice([2, 3, size + 1, size + 2, 10, 50]))
    case = str(rng.choice(["ordinary", "near", "perfect", "constant", "units"]))
    x = rng.normal(size=(n, size))
    if case == "near" and size > 1:
        x[:, -1] = x[:, 0] + float(rng.choice([1e-3, 1e-5])) * rng.normal(size=n)
    if case == "units":
        x = x * 10.0 ** rng.integers(-6, 7, size) + rng.choice([0.0, 100.0])
    scale = np.abs(x).max(axis=0)
    y = rng.normal() + (x / scale) @ rng.normal(size=size) + (0.0 if case == "perfect" else 1.0) * rng.normal(size=n)
    if case == "constant":
        y = np.full(n, float(rng.choice([0.0, 1.0, 3.7])))
    rows = {f"x{k}": x[:, k] for k in range(size)} | {"y": y}
    parents = {"y": [f"x{k}" for k in range(size)]}
    net = fitted(sf.BayesianNetwork(parents, states=dict.fromkeys(rows, "real")), rows)
    spreads = [_regression_rest(x[:, k], x[:, :0]) for k in range(size)] + [_regression_rest(y, x)]
    shares = [rest / max(whole, float(np.abs(y).max()) * 1e-14, 1e-300) for whole, rest in spreads]
    if any(1e-12 < share < 1e-7 for share in shares):
        return
    exists = min(shares) > 1e-7
    yield verdict("BayesianNetwork linear-Gaussian", net, exists)
    if net is None or not exists:
        if net is not None and net.report_.certificate.value_gap is not None:  # Of a likelihood without a bound.
            yield shortfall("BayesianNetwork linear-Gaussian", net, 0.0, np.inf, n)
        return
    wide = np.longdouble
    reached = best = 0.0
    for k, (_, rest) in enumerate(spreads):
        node = net.node(f"x{k}" if k < size else "y")
        weights, variance = np.asarray(node.weights_, dtype=wide), float(node.variance_)
        target, columns = (x[:, k], x[:, :0]) if k < size else (y, x)
        left = target.astype(wide) - weights[0] - columns.astype(wide) @ weights[1:]
        reached += float(-0.5 * n * np.log(2 * np.pi * variance) - 0.5 * float(left @ left) / variance)
        best += -0.5 * n * (np.log(2 * np.pi * rest**2) + 1)
    yield shortfall(
        "BayesianNetwork linear-Gaussian", net, reached, best, n, 1e-9 if case in {"near", "units"} else 1e-11
    )


def _mixed(rng: np.random.Generator) -> Iterator[Record]:
    """A real node with a parent of states and a real one: one regression for each state."""
    n = int(rng.choice([12, 40, 120]))
    d, x = rng.integers(0, 2, n), rng.normal(size=n)
    y = d + (1 - 2 * d) * x + rng.normal(size=n) * np.where(d == 1, rng.choice([0.0, 0.5]), 1.0)
    groups = [np.flatnonzero(d == state) for state in (0, 1)]
    if min(len(group) for group in groups) == 0:
        return
    rows = {"d": d, "x": x, "y": y}
    net = fitted(sf.BayesianNetwork({"y": ["d", "x"]}, states={"d": [0, 1], "x": "real", "y": "real"}), rows)
    spreads = [_regression_rest(y[group], x[group, None]) for group in groups]
    shares = [rest / max(whole, 1e-300) for whole, rest in spreads]
    exists = min(shares) > 1e-7
    yield verdict("BayesianNetwork mixed", net, exists)
    if net is None or not exists:
        return
    own = float(x.var())
    best = -0.5 * n * (np.log(2 * np.pi * own) + 1) + sum(len(g) * np.log(len(g) / n) for g in groups)
    node, root = net.node("y"), net.node("x")
    reached = float(special.xlogy([len(g) for g in groups], net.table("d").values).sum())
    reached += float(np.sum(stats.norm.logpdf(x, root.weights_[0], np.sqrt(root.variance_))))
    for state, group in enumerate(groups):
        best += -0.5 * len(group) * (np.log(2 * np.pi * spreads[state][1] ** 2) + 1)
        mean = node.weights_[state] @ np.stack([np.ones(len(group)), x[group]])
        reached += float(np.sum(stats.norm.logpdf(y[group], mean, np.sqrt(node.variance_[state]))))
    yield shortfall("BayesianNetwork mixed", net, reached, best, n, 1e-11)


def _line_errors(rng: np.random.Generator) -> Iterator[Record]:
    covered = 0
    slope, spread = float(rng.normal()), float(np.exp(rng.normal()))
    for _ in range(10):
        x = rng.normal(size=200)
        net = fitted(sf.BayesianNetwork({"y": ["x"]}), {"x": x, "y": 1 + slope * x + spread * rng.normal(size=200)})
        error = float(net.standard_errors_["y"].values[1])
        covered += int(abs(float(net.node("y").weights_[1]) - slope) <= 1.96 * error)
    yield Coverage("BayesianNetwork linear-Gaussian, standard errors", covered, 10)


# -- other nodes -------------------------------------------------------------------------------------------------------


def _noisy_or(rng: np.random.Generator) -> Iterator[Record]:
    """Concave in the weights, each at least 0: a search within bounds; a weight runs where no row holds it back."""
    size, n = int(rng.integers(1, 5)), int(rng.choice([10, 40, 200]))
    causes = rng.random((n, size)) < rng.uniform(0.2, 0.6)
    quiet = rng.uniform(0.5, 1.0) * np.prod(np.where(causes, rng.uniform(0.0, 1.0, size), 1.0), axis=1)
    effect = rng.random(n) > quiet
    if effect.all() or not effect.any() or not (causes.any(axis=0) & ~causes.all(axis=0)).all():
        return
    rows = {f"c{k}": causes[:, k] for k in range(size)} | {"e": effect}
    names = [f"c{k}" for k in range(size)]
    both = {name: [False, True] for name in rows}
    net = fitted(sf.BayesianNetwork({"e": names}, nodes={"e": "noisy-or"}, states=both), rows)
    design = np.column_stack([np.ones(n), causes])
    runs = [bool(~(design[~effect, k] > 0).any()) for k in range(size + 1)]

    def down(weights: Floats) -> tuple[float, Floats]:
        eta = np.maximum(design @ weights, 1e-300)
        yes = np.log(-np.expm1(-eta))
        value = float(np.where(effect, yes, -eta).sum())
        return -value, -(design.T @ np.where(effect, 1 / np.expm1(np.minimum(eta, 700.0)), -1.0))

    live = [k for k in range(size + 1) if not runs[k]]
    tight = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 3000}
    bounds = [(0.0, None) if k in live else (0.0, 60.0) for k in range(size + 1)]
    found = min(
        (
            search(down, begin, jac=True, method="L-BFGS-B", bounds=bounds, options=tight)
            for begin in (np.full(size + 1, 0.3), np.full(size + 1, 1.0))
        ),
        key=lambda one: float(one.fun),
    )
    slope = float(down(found.x)[1][0])
    if found.x[0] < 1e-6 and abs(slope) < 1e-4:
        return  # Whether the leak is 0 or hardly more cannot be told.
    yield verdict("BayesianNetwork noisy-OR", net, not any(runs) and found.x[0] > 1e-6)
    if net is None or any(runs):
        return
    node = net.node("e")
    with np.errstate(divide="ignore"):
        weights = -np.log([1 - node.leak_, *(node.inhibitors_[name][True] for name in names)])
    reached = best = 0.0
    for k in range(size):
        share = float(causes[:, k].mean())
        said = net.table(f"c{k}").values
        reached += n * (share * np.log(said[1]) + (1 - share) * np.log(said[0]))
        best += n * (share * np.log(share) + (1 - share) * np.log(1 - share))
    at = -down(weights)[0]
    yield shortfall("BayesianNetwork noisy-OR", net, reached + at, best + max(at, -float(found.fun)), n, 1e-10)


def _glm_node(rng: np.random.Generator) -> Iterator[Record]:
    n = int(rng.choice([8, 15, 60]))
    family = str(rng.choice(["binomial", "poisson"]))
    x = rng.integers(0, 3, n).astype(float) if n < 20 else rng.normal(size=n)
    design = np.column_stack([np.ones(n), x])
    eta = rng.normal() + 1.5 * rng.normal() * x
    if family == "binomial":
        y = (rng.random(n) < special.expit(2 * eta)).astype(int)
        law: Any = sf.Bernoulli(states=(0, 1))
        truth = not recedes(np.zeros((0, 2)), np.where(y > 0, 1, -1)[:, None] * design)
    else:
        y, law = rng.poisson(np.exp(np.minimum(eta, 2.5))), sf.Poisson()
        truth = not recedes(design[y > 0], -design[y == 0])
    if len(set(x.tolist())) < 2 or not 0 < np.count_nonzero(y) or (family == "binomial" and y.all()):
        return
    unit = float(10.0 ** rng.integers(-6, 7))
    states = {"x": "real"} | ({"y": [0, 1]} if family == "binomial" else {})
    net = fitted(
        sf.BayesianNetwork({"y": ["x"]}, nodes={"y": sf.GLM(family=law)}, states=states), {"x": x * unit, "y": y}
    )
    yield verdict(f"BayesianNetwork GLM node, {family}", net, truth)
    if net is None or not truth:
        return
    node, root = net.node("y"), net.node("x")
    link = "logit" if family == "binomial" else "log"
    problem = Regression(family, link, design, y.astype(float), 1.0, np.zeros(2), np.zeros(2))
    at = np.array([float(node.intercept_), float(node.coefficients_["x"]) * unit])
    reached = float(np.sum(stats.norm.logpdf(x * unit, root.weights_[0], np.sqrt(root.variance_))))
    best = -0.5 * n * (np.log(2 * np.pi * x.var() * unit**2) + 1)
    total = problem.value(at)[0]
    top = problem.best(at, np.zeros(2))
    yield shortfall(f"BayesianNetwork GLM node, {family}", net, reached + total, best + top, n, 1e-11)


# -- EM ----------------------------------------------------------------------------------------------------------------


def _with_gaps(rng: np.random.Generator, rows: Mapping[str, Codes], share: float) -> dict[str, Any]:
    found = {}
    for name, values in rows.items():
        column = values.astype(object)
        column[rng.random(len(values)) < share] = None
        found[name] = column
    return found


class Enumerated:
    """The log-likelihood of rows with gaps, by the sum over every joint state that agrees with a row."""

    def __init__(self, shape: Shape, rows: Mapping[str, Any], weight: float) -> None:
        """`weight` pseudo-counts are added to each cell of each table."""
        self.parents, self.states = shape
        self.weight = weight
        names = list(self.parents)
        self.joint = np.array(list(itertools.product(*(range(self.states[name]) for name in names))))
        self.at = {name: k for k, name in enumerate(names)}
        n = len(next(iter(rows.values())))
        agrees = np.ones((n, len(self.joint)), dtype=np.bool_)
        for name, column in rows.items():
            shown = np.array([-1 if value is None else int(value) for value in column])
            agrees &= (shown < 0)[:, None] | (shown[:, None] == self.joint[:, self.at[name]])
        self.patterns, self.number = np.unique(agrees, axis=0, return_counts=True)
        self.shapes = {name: tuple(self.states[one] for one in (*self.parents[name], name)) for name in names}

    def value(self, tables: Mapping[str, Floats]) -> float:
        """Log-likelihood and the logarithm of the prior, a constant apart."""
        return self._look(tables)[0]

    def expected(self, tables: Mapping[str, Floats]) -> dict[str, Floats]:
        """The counts of each table that the rows are expected to hold."""
        return self._look(tables)[1]

    def _look(self, tables: Mapping[str, Floats]) -> tuple[float, dict[str, Floats]]:
        """The value, and the counts that are expected in each table, pseudo-counts among them."""
        log_joint, extra = np.zeros(len(self.joint)), 0.0
        with np.errstate(divide="ignore"):
            for name, table in tables.items():
                log_joint += np.log(table)[self._places(name)]
                extra += self.weight * float(np.log(table).sum()) if self.weight else 0.0
            joint = np.exp(log_joint)
            shown = self.patterns @ joint
            value = float(self.number @ np.log(shown)) + extra
        state = joint * ((self.number / np.maximum(shown, 1e-300)) @ self.patterns)
        counts = {}
        for name in tables:
            counts[name] = np.full(self.shapes[name], self.weight)
            np.add.at(counts[name], self._places(name), state)
        return value, counts

    def _places(self, name: str) -> tuple[Any, ...]:
        return tuple(self.joint[:, self.at[one]] for one in (*self.parents[name], name))

    def climb(self, tables: Mapping[str, Floats]) -> float:
        """The local optimum that a search finds from these tables, in the logarithms of their cells."""
        names = list(tables)
        sizes = np.cumsum([0, *(tables[name].size for name in names)])

        def unpack(free: Floats) -> dict[str, Floats]:
            parts = {name: free[a:b] for name, (a, b) in zip(names, itertools.pairwise(sizes), strict=True)}
            return {name: special.softmax(part.reshape(self.shapes[name]), axis=-1) for name, part in parts.items()}

        def slope(free: Floats) -> Floats:
            found = unpack(free)
            counts = self.expected(found)
            return np.concatenate(
                [(counts[name] - counts[name].sum(axis=-1, keepdims=True) * found[name]).ravel() for name in names]
            )

        start = np.concatenate([np.log(np.maximum(tables[name], 1e-12)).ravel() for name in names])
        return highest(lambda free: self.value(unpack(free)), start, gradient=slope)


WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    (", prior", {"prior": 0.7}),
    (", squarem", {"acceleration": "squarem"}),
    (", max_iter=2", {"max_iter": 2}),
)


def _em(rng: np.random.Generator, hidden: bool) -> Iterator[Record]:
    if hidden:
        children = int(rng.integers(3, 5))
        shape: Shape = ({"h": []} | {f"v{k}": ["h"] for k in range(children)}, {})
        shape[1].update({"h": 2} | {f"v{k}": 2 for k in range(children)})
        shape[1]["v0"] = int(rng.choice([2, 3]))
    else:
        shape = _shape(rng, 3, 3)
    n = int(rng.choice([30, 120]))
    rows: dict[str, Any] = _draw(rng, shape, _tables(rng, shape, 0.7 if hidden else 1.5), n)
    if hidden:
        rows.pop("h")
    else:
        rows = _with_gaps(rng, rows, 0.25)
    way, options = WAYS[int(rng.integers(len(WAYS)))]
    declared = {name: states for name, states in _declared(shape).items() if name in rows}
    more: dict[str, Any] = {"hidden": {"h": 2}} if hidden else {}
    seed = int(rng.integers(1000))
    net = fitted(sf.BayesianNetwork(shape[0], states=declared, random_state=seed, **more, **options), rows)
    name = f"BayesianNetwork EM, {'latent class' if hidden else 'gaps'}{way}"
    if net is None:
        return
    oracle = Enumerated(shape, rows, float(options.get("prior", 0.0)))
    tables = {node: np.asarray(net.table(node).values, dtype=np.float64) for node in shape[0]}
    reached = oracle.value(tables)
    yield agreement(f"{name}: objective", net.report_.objective - _constant(net), reached, n, 1e-9)
    yield from stationary(name, net, reached, max(oracle.climb(tables), reached), n)
    unseen = any(set(range(shape[1][one])) - {v for v in column if v is not None} for one, column in rows.items())
    if options.get("prior"):
        yield verdict(f"{name}: existence", net, True)
    elif hidden and unseen:  # Where a node has gaps, a state that no row shows may stand for some of them.
        yield verdict(f"{name}: existence", net, False)


def _constant(net: Any) -> float:
    """What the library's log prior has beside the sum of weighted logarithms, by its own figures at the estimate."""
    weight = net.get_params()["prior"]
    if weight is None:
        return 0.0
    logs = sum(float(np.log(net.table(node).values).sum()) for node in net.nodes)
    return float(net.report_.objective - net.report_.log_likelihood - weight * logs)


def _unidentified(rng: np.random.Generator) -> Iterator[Record]:
    """More parameters than the cells of what is seen: two seen nodes below a hidden one."""
    states = int(rng.integers(2, 4))
    n, free = int(rng.choice([50, 200])), (states - 1) + 2 * states
    rows = {"a": rng.integers(0, 2, n), "b": rng.integers(0, 2, n)}
    net = fitted(sf.BayesianNetwork({"h": [], "a": ["h"], "b": ["h"]}, hidden={"h": states}, random_state=0), rows)
    curvature = net.report_.certificate.curvature
    if curvature is not None:
        yield Existence("BayesianNetwork latent class: identified", free <= 3, curvature.point == "maximum")


# -- samples -----------------------------------------------------------------------------------------------------------


def _sampled(rng: np.random.Generator, rare: bool) -> Iterator[Record]:
    """Likelihood weighting beside the sum over every joint state; with rare evidence too."""
    shape = _shape(rng, int(rng.integers(3, 6)), 3)
    tables = _tables(rng, shape)
    evidence_node = list(shape[0])[-1]
    if rare:
        shape[0][evidence_node] = ["v0"]
        small = float(10.0 ** rng.uniform(-6, -2))
        tables["v0"] = np.append(np.full(shape[1]["v0"] - 1, (1 - small) / (shape[1]["v0"] - 1)), small)
        table = np.full((shape[1]["v0"], shape[1][evidence_node]), 1.0)
        table[:, 1] = small * 0.1
        table[-1, 1] = 5.0
        tables[evidence_node] = table / table.sum(axis=1, keepdims=True)
    net = sf.BayesianNetwork(shape[0], states=_declared(shape), fixed=tables)
    given = {evidence_node: 1 if rare else 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = net.query("v0", given, engine="sampling", n=4000, random_state=int(rng.integers(2**31)))
    warned = any(issubclass(one.category, sf.SamplingWarning) for one in caught)
    oracle = Enumerated(shape, {evidence_node: [given[evidence_node]]}, 0.0)
    exact = oracle.expected(tables)["v0"]
    which = shape[1]["v0"] - 1 if rare else int(rng.integers(shape[1]["v0"]))
    error = float(answer.standard_errors.values[which])
    off = float(answer.values[which] - exact[which])
    name = f"BayesianNetwork likelihood weighting{', rare evidence' if rare else ''}"
    if error > 0 or abs(off) > 1e-12:
        yield Sampled(name, off / error if error > 0 else np.inf, warned)


PROBLEMS: dict[str, Problem] = {
    "BayesianNetwork tables": _complete_tables,
    "BayesianNetwork tables, standard errors": _table_errors,
    "BayesianNetwork linear-Gaussian": _linear_gaussian,
    "BayesianNetwork linear-Gaussian, standard errors": _line_errors,
    "BayesianNetwork mixed": _mixed,
    "BayesianNetwork noisy-OR": _noisy_or,
    "BayesianNetwork GLM node": _glm_node,
    "BayesianNetwork EM, gaps": lambda rng: _em(rng, hidden=False),
    "BayesianNetwork EM, latent class": lambda rng: _em(rng, hidden=True),
    "BayesianNetwork EM, not identified": _unidentified,
    "BayesianNetwork likelihood weighting": lambda rng: _sampled(rng, rare=False),
    "BayesianNetwork likelihood weighting, rare evidence": lambda rng: _sampled(rng, rare=True),
}
