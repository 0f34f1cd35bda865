"""Random chain and graph CRFs with two or three labels: every labelling of every example is listed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from benchmarks.audit.judging import fitted_or_refused, value_record
from benchmarks.audit.log_linear import Group, LogLinear, Penalty
from benchmarks.audit.markov_networks import draw_prior
from benchmarks.audit.record import Existence, Problem, Record

Floats = NDArray[np.float64]
Rng = np.random.Generator
Found = Iterator[Record]
#: The features (k,) of a labelling of an example.
Features = Callable[[Any, Sequence[int]], Floats]

PRIORS = ("no prior", "no prior", "Normal", "Laplace", "both")
STOCHASTIC = ("sgd", "adam")
SOLVERS = ("auto", "lbfgs", "newton", *STOCHASTIC)
#: Passes or iterations at most: Newton's method follows labels that are separated for very long.
LIMITS = {"sgd": 5, "adam": 5, "newton": 30}


def draw_penalty(rng: Rng, kind: str, k: int, full: bool) -> tuple[Any, Penalty]:
    """A prior on k weights, and the same by its definition; full: a normal one may have a covariance."""
    if kind == "both":
        (normal, smooth), (laplace, rough) = (draw_prior(rng, one, k) for one in ("Normal", "Laplace"))
        return (normal, laplace), Penalty(smooth.mean, smooth.precision, rough.rate)
    return draw_prior(rng, "full Normal" if kind == "Normal" and full and rng.random() < 0.4 else kind, k)


def oracle_of(
    X: Sequence[Any], y: Sequence[Sequence[int]], size: int, features: Features, weights: Floats, penalty: Penalty
) -> LogLinear:
    """The objective, with one group for each example."""
    groups = []
    for example, labels, weight in zip(X, y, weights, strict=True):
        listed = list(itertools.product(range(size), repeat=len(labels)))
        table = np.array([features(example, labelling) for labelling in listed])
        groups.append(Group(table, np.array([labelling == tuple(labels) for labelling in listed]) * 1.0, float(weight)))
    return LogLinear(groups, penalty)


def learned(model: Any, X: Any, y: Any, weights: Floats) -> Any:
    """The fitted model, or "refused". Stochastic steps that are too long say nothing about a maximum: they raise."""
    if model.get_params()["solver"] in STOCHASTIC:
        return model.fit(X, y, sample_weight=weights)
    return fitted_or_refused(lambda: model.fit(X, y, sample_weight=weights))


def judge(model: str, how: str, fitted: Any, oracle: LogLinear, prior: str) -> Found:
    """Records of a fit."""
    said = fitted if isinstance(fitted, str) else fitted.report_.certificate.exists
    yield Existence(f"{model}" + ("" if prior == "no prior" else ", a prior"), oracle.exists, said)
    if isinstance(fitted, str) or not oracle.exists:
        return
    yield value_record(f"{model} {how}", fitted, oracle.optimum(), oracle.value(np.asarray(fitted.weights_)))


def draw_options(rng: Rng, prior: str) -> tuple[dict[str, Any], str]:
    """Solver and limits, and what to call them."""
    solver = str(rng.choice(SOLVERS)) if prior in ("no prior", "Normal") else "auto"
    stopped = solver not in STOCHASTIC and rng.random() < 0.2
    limit = 2 if stopped else LIMITS.get(solver, 1_000)
    options: dict[str, Any] = {"solver": solver, "max_iter": limit, "threads": 1, "random_state": 0}
    if rng.random() < 0.3:
        options["tolerance"] = 1e-9
    return options, f"{solver}, {prior}" + (", max_iter=2" if stopped else "")


def draw_weights(rng: Rng, n: int) -> Floats:
    """How many examples each stands for; most often one."""
    if rng.random() < 0.6:
        return np.ones(n)
    reach = float(rng.choice([1.0, 8.0]))
    return np.asarray(10.0 ** rng.uniform(-reach, reach, size=n if rng.random() < 0.5 else 1) * np.ones(n))


def draw_units(rng: Rng, width: int) -> Floats:
    """The units of the columns; most often all alike."""
    return np.asarray(10.0 ** (rng.uniform(-4, 4, size=width) * (rng.random() < 0.3)))


# -- chains ----------------------------------------------------------------------------------------------------------


def chain(rng: Rng) -> Found:
    """Sequences of arrays, with and without weights of first and last labels and of steps that depend on features."""
    size, width, n = int(rng.integers(2, 4)), int(rng.integers(1, 5)), int(rng.integers(2, rng.choice([6, 30])))
    longest = 4 if size == 3 else 5
    real = rng.random() < 0.6
    units, shifts = draw_units(rng, width), rng.normal(size=width) * 10.0 ** rng.uniform(0, 4) * (rng.random() < 0.2)
    X = [(_values(rng, (int(rng.integers(1, longest + 1)), width), real) + shifts) * units for _ in range(n)]
    y = [rng.integers(0, size, size=len(x)).tolist() for x in X]
    seen = sorted({label for labels in y for label in labels})
    options, how = draw_options(rng, prior := str(rng.choice(PRIORS)))
    options["labels"] = list(range(size)) if rng.random() < 0.5 else None
    options |= {"boundaries": bool(rng.random() < 0.4), "bias": bool(rng.random() < 0.4)}
    options["conditioned_transitions"] = bool(rng.random() < 0.2)
    labels = list(range(size)) if options["labels"] else seen
    names = _names(X, y, options)
    k = len(names)
    given, penalty = draw_penalty(rng, prior, k, full=False)
    weights = draw_weights(rng, n)

    def features(x: Floats, path: Sequence[int]) -> Floats:
        return np.array([_chain_feature(name, x, [labels[code] for code in path]) for name in names])

    codes = [[labels.index(label) for label in path] for path in y]
    oracle = oracle_of(X, codes, len(labels), features, weights, penalty)
    fitted = learned(sf.ChainCRF(prior=given, **options), X, y, weights)
    yield from judge("ChainCRF", how, fitted, oracle, prior)


def named_chain(rng: Rng) -> Found:
    """Sequences of names: only pairs that were seen have weights; some steps from label to label are impossible."""
    labels, words, n = (
        ["A", "B", "C"][: int(rng.integers(2, 4))],
        "stuvw"[: int(rng.integers(1, 6))],
        int(rng.integers(1, 9)),
    )
    forbidden = [(a, b) for a in [None, *labels] for b in labels if rng.random() < 0.15] if rng.random() < 0.4 else []
    paths = [
        path for size in range(1, 5) for path in itertools.product(labels, repeat=size) if _allowed(path, forbidden)
    ]
    if not paths:
        return
    y = [list(paths[int(rng.integers(len(paths)))]) for _ in range(n)]
    X = [[{"word": str(rng.choice(list(words))), "size": float(rng.integers(1, 3))} for _ in path] for path in y]
    options, how = draw_options(rng, prior := str(rng.choice(PRIORS)))
    options |= {"labels": labels, "boundaries": bool(rng.random() < 0.4), "constraints": forbidden or None}
    options |= {f"all_possible_{what}": bool(rng.random() < 0.3) for what in ("states", "transitions")}
    names = _names(X, y, options)
    given, penalty = draw_penalty(rng, prior, len(names), full=False)
    weights, groups = draw_weights(rng, n), []
    for steps, path, weight in zip(X, y, weights, strict=True):
        listed = [p for p in itertools.product(labels, repeat=len(path)) if _allowed(p, forbidden)]
        values = {name: np.array([_named(step, name) for step in steps]) for kind, name, *_ in names if kind == "state"}
        table = np.array([[_chain_feature(name, values, p) for name in names] for p in listed])
        groups.append(Group(table, np.array([p == tuple(path) for p in listed]) * 1.0, float(weight)))
    fitted = learned(sf.ChainCRF(prior=given, **options), X, y, weights)
    yield from judge("ChainCRF named features", how, fitted, LogLinear(groups, penalty), prior)


def _allowed(path: Sequence[str], forbidden: Sequence[tuple[Any, str]]) -> bool:
    return not any(step in forbidden for step in itertools.pairwise([None, *path]))


def _named(step: dict[str, Any], name: str) -> float:
    """The value of a feature of a step: text is a feature of its own."""
    if name == "size":
        return float(step["size"])
    return float(name == f"word:{step['word']}")


def _names(X: Any, y: Any, options: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The order of the weights, as the model itself names them before it has learned anything."""
    short = {**options, "max_iter": 1, "solver": "lbfgs"}
    return list(sf.ChainCRF(prior=sf.Normal(variance=1.0), **short).fit(X, y).weight_names_)


def _values(rng: Rng, shape: tuple[int, int], real: bool) -> Floats:
    return np.asarray(rng.normal(size=shape) if real else rng.integers(0, 2, size=shape), dtype=np.float64)


def _chain_feature(name: tuple[Any, ...], x: Any, path: Sequence[Any]) -> float:
    """How often a weight counts along a path, by its name."""
    kind, *rest = name
    if kind == "state":
        column, label = rest
        return sum(_column(x, column)[t] for t, here in enumerate(path) if here == label)  # type: ignore[no-any-return]
    if kind == "start":
        return float(path[0] == rest[0])
    if kind == "end":
        return float(path[-1] == rest[0])
    *column_of, before, label = rest
    steps = [t for t in range(1, len(path)) if (path[t - 1], path[t]) == (before, label)]
    return float(sum(_column(x, column_of[0])[t] for t in steps) if column_of else len(steps))


def _column(x: Any, column: Any) -> Floats:
    """The values of a feature at all steps: of named ones by name, of arrays by place; the bias has no place."""
    if isinstance(x, dict):
        return np.asarray(x[column])
    return np.asarray(x[:, column] if isinstance(column, int | np.integer) else np.ones(len(x)))


# -- graphs ----------------------------------------------------------------------------------------------------------


def graph(rng: Rng) -> Found:
    """Graphs of up to five nodes with features of nodes and edges, in all forms of the weights of edges."""
    size, width, n = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(2, rng.choice([6, 25])))
    edge_width, form = int(rng.integers(1, 3)), str(rng.choice(["full", "symmetric", "equal"]))
    plain, real, units = rng.random() < 0.5, rng.random() < 0.6, draw_units(rng, width)
    X, y = [], []
    for _ in range(n):
        nodes = int(rng.integers(1, 5))
        pairs = [pair for pair in itertools.combinations(range(nodes), 2) if rng.random() < 0.6]
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        values = np.ones((len(edges), 1)) if plain else _values(rng, (len(edges), edge_width), real)
        X.append(sf.GraphExample(_values(rng, (nodes, width), real) * units, edges, values))
        y.append(rng.integers(0, size, size=nodes).tolist())
    options, how = draw_options(rng, prior := str(rng.choice(PRIORS)))
    options["labels"], options["edge_weights"] = list(range(size)), form
    short = {**options, "max_iter": 1, "solver": "lbfgs"}
    names = list(sf.GraphCRF(prior=sf.Normal(variance=1.0), **short).fit(X, y).weight_names_)
    given, penalty = draw_penalty(rng, prior, len(names), full=True)
    weights = draw_weights(rng, n)

    def features(example: Any, labelling: Sequence[int]) -> Floats:
        return np.array([_graph_feature(name, example, labelling, form) for name in names])

    oracle = oracle_of(X, y, size, features, weights, penalty)
    fitted = learned(sf.GraphCRF(prior=given, **options), X, y, weights)
    yield from judge("GraphCRF", how, fitted, oracle, prior)


def _graph_feature(name: tuple[Any, ...], example: Any, labelling: Sequence[int], form: str) -> float:
    """How often a weight counts in a labelling, by its name."""
    kind, *labels, column = name
    if kind == "nodes":
        return float(sum(example.nodes[at, column] for at, label in enumerate(labelling) if label == labels[0]))
    total = 0.0
    for (a, b), values in zip(example.edges, example.edge_features, strict=True):
        pair = [labelling[a], labelling[b]]
        alike = {"full": pair == labels, "symmetric": sorted(pair) == sorted(labels), "equal": pair[0] == pair[1]}
        total += float(values[column]) if alike[form] else 0.0
    return total


PROBLEMS: dict[str, Problem] = {"chain-crf": chain, "chain-crf-named": named_chain, "graph-crf": graph}
