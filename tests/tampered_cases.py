"""Every model with every solver, how the result of the solver is moved on its way into the model, and what is lost.

A `Case` fits a model to its rows. `spoil` takes a monkeypatch and moves the parameters where the result of the solver
enters the model; all that the solver says about them (gradient, objective, gap, that it converged) stays as it was.
`value` is the objective of a fitted model, a sum over rows, written out anew from its parameters: enumeration, SciPy,
or a few lines of NumPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

import suffice as sf
from graph_labelings import Enumerated, score_of, tables_of
from label_paths import log_likelihood as path_likelihood
from log_linear import design_of, law_of, table_features
from observed_rows import CLASSES, CYCLE, class_oracle, class_rows, cycle_oracle, cycle_rows

Spoil = Callable[[Any], None]


@dataclass(frozen=True)
class Case:
    """How a model is fitted, spoiled and measured; `scale`: what its objective is divided by for one row."""

    fit: Callable[[], Any]
    spoil: Spoil
    value: Callable[[Any], float] | None = None
    scale: float = 1.0
    #: Whether chains measure the gap: then the honest fit has noise too.
    sampled: bool = False


def moved(outcome: Any, change: Callable[[Any], Any]) -> Any:
    """The outcome of a solver at other parameters, which says all that it said before."""
    return replace(outcome, state=replace(outcome.state, parameters=change(outcome.state.parameters)))


def shifted(by: float, seed: int = 7) -> Callable[[Any], Any]:
    """Parameters with noise of this size."""
    return lambda x: x + by * np.random.default_rng(seed).normal(size=np.shape(x))


def patched(place: str, change: Callable[[Any], Any]) -> Spoil:
    """What the function at this place returns is changed."""

    def spoil(monkeypatch: Any) -> None:
        module, name = place.rsplit(".", 1)
        owner = __import__(module, fromlist=["_"]) if "|" not in module else _owner(module)
        right = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **options: change(right(*args, **options)))

    return spoil


def _owner(place: str) -> Any:
    module, name = place.split("|")
    return getattr(__import__(module, fromlist=["_"]), name)


def ended(place: str, change: Callable[[Any], Any]) -> Spoil:
    """The outcome that the solver at this place returns has other parameters."""
    return patched(place, lambda outcome: moved(outcome, change))


# -- laws --------------------------------------------------------------------------------------------------------------

POSITIVE = stats.gamma.rvs(2.5, scale=0.7, size=60, random_state=1)
SHARES = stats.beta.rvs(2.0, 3.0, size=60, random_state=2)
SIMPLEX = stats.dirichlet.rvs([2.0, 1.0, 3.0], size=60, random_state=3)
COUNTED: Any = stats.nbinom.rvs(3, 0.4, size=60, random_state=4)
REAL = stats.norm.rvs(1.0, 2.0, size=60, random_state=5)
PLANE = stats.multivariate_normal.rvs([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], size=60, random_state=6)
LABELS = np.random.default_rng(7).choice(list("uvw"), 60).tolist()


def _scaled(law: type, factor: float = 1.2) -> Spoil:
    """A closed form whose parameters are off by a factor."""

    def spoil(monkeypatch: Any) -> None:
        kind = law.member_class  # type: ignore[attr-defined]
        right = kind.maximise

        def wrong(self: Any, summary: Any, control: Any) -> Any:
            found, outcome = right(self, summary, control)
            spoiled = {name: self.known.get(name) or _off(name, value, factor) for name, value in found.items()}
            return spoiled, outcome

        monkeypatch.setattr(kind, "maximise", wrong)

    return spoil


def _off(name: str, value: Any, factor: float) -> Any:
    if name == "probabilities":
        weights = np.asarray(value) * factor ** np.arange(len(value))
        return weights / weights.sum()
    if name == "probability":
        return value / factor
    return np.asarray(value) * factor if np.ndim(value) else value * factor


def _law(make: Callable[[], Any], rows: Any, log_density: Callable[[Any, Any], Any], spoil: Spoil) -> Case:
    def value(law: Any) -> float:
        return float(np.sum(log_density(law, rows)))

    return Case(lambda: make().fit(rows), spoil, value, len(rows))


def _categorical(law: Any, rows: Any) -> Any:
    table = dict(zip(law.states_, law.probabilities_, strict=True))
    return [np.log(table[label]) for label in rows]


LAWS = {
    "normal": _law(sf.Normal, REAL, lambda p, x: stats.norm.logpdf(x, p.mean_, p.variance_**0.5), _scaled(sf.Normal)),
    "multivariate-normal": _law(
        sf.MultivariateNormal,
        PLANE,
        lambda p, x: stats.multivariate_normal.logpdf(x, p.mean_, p.covariance_),
        _scaled(sf.MultivariateNormal),
    ),
    "categorical": _law(sf.Categorical, LABELS, _categorical, _scaled(sf.Categorical)),
    "bernoulli": _law(
        sf.Bernoulli,
        (COUNTED > 3).astype(int),
        lambda p, x: stats.bernoulli.logpmf(x, p.probability_),
        _scaled(sf.Bernoulli),
    ),
    "poisson": _law(sf.Poisson, COUNTED, lambda p, x: stats.poisson.logpmf(x, p.rate_), _scaled(sf.Poisson)),
    "geometric": _law(
        sf.Geometric, COUNTED, lambda p, x: stats.geom.logpmf(x + 1, p.probability_), _scaled(sf.Geometric)
    ),
    "negative-binomial": _law(
        lambda: sf.NegativeBinomial(size=3),
        COUNTED,
        lambda p, x: stats.nbinom.logpmf(x, 3, p.probability_),
        _scaled(sf.NegativeBinomial),
    ),
    "exponential": _law(
        sf.Exponential, POSITIVE, lambda p, x: stats.expon.logpdf(x, scale=1 / p.rate_), _scaled(sf.Exponential)
    ),
    "gamma": _law(
        sf.Gamma,
        POSITIVE,
        lambda p, x: stats.gamma.logpdf(x, p.shape_, scale=1 / p.rate_),
        ended("suffice.families.shape_family.match_shape", lambda x: 1.2 * x),
    ),
    "inverse-gamma": _law(
        sf.InverseGamma,
        POSITIVE,
        lambda p, x: stats.invgamma.logpdf(x, p.shape_, scale=p.scale_),
        ended("suffice.families.shape_family.match_shape", lambda x: 1.2 * x),
    ),
    "beta": _law(
        sf.Beta,
        SHARES,
        lambda p, x: stats.beta.logpdf(x, p.alpha_, p.beta_),
        ended("suffice.families.member|FamilyMember._newton", lambda x: 1.2 * x),
    ),
    "dirichlet": _law(
        sf.Dirichlet,
        SIMPLEX,
        lambda p, x: stats.dirichlet.logpdf(x.T, p.alpha_),
        ended("suffice.families.member|FamilyMember._newton", lambda x: 1.2 * x),
    ),
}

# -- Bayesian networks -------------------------------------------------------------------------------------------------

DRAWN = np.random.default_rng(11)
BITS = {"a": DRAWN.integers(0, 2, 80).tolist(), "b": DRAWN.integers(0, 2, 80).tolist()}
BITS["c"] = [int(DRAWN.random() < (0.8 if a or b else 0.15)) for a, b in zip(BITS["a"], BITS["b"], strict=True)]
NUMBERS: dict[str, Any] = {"u": DRAWN.normal(size=80), "w": DRAWN.normal(size=80)}
NUMBERS["v"] = 0.5 + NUMBERS["u"] - 0.3 * NUMBERS["w"] + 0.6 * DRAWN.normal(size=80)
COUNTS_BY_U: dict[str, Any] = {"u": NUMBERS["u"], "n": DRAWN.poisson(np.exp(0.4 + 0.5 * NUMBERS["u"]))}
HOLES = {name: [None if DRAWN.random() < 0.2 else value for value in column] for name, column in BITS.items()}
EDGES = [("a", "c"), ("b", "c")]


def _nodes(change: Callable[[Any], Any]) -> Spoil:
    """The nodes of a network at other parameters."""

    def spoil(monkeypatch: Any) -> None:
        owner = _owner("suffice.models.bayesian.learning|NodeLearning")
        right = owner.learned

        def wrong(*args: Any) -> Any:
            return {name: node.with_parameters(change(node.parameters())) for name, node in right(*args).items()}

        monkeypatch.setattr(owner, "learned", wrong)

    return spoil


def _flatter(shares: Any) -> Any:
    """Probabilities of two states nearer to even ones."""
    return 0.7 * shares + 0.15


def _table_value(net: Any, rows: Any, added: float = 0.0) -> float:
    """Of tables, by their definition; `added` pseudo-counts for each probability."""
    total = 0.0
    names = list(rows)
    for values in zip(*rows.values(), strict=True):
        row = dict(zip(names, values, strict=True))
        hidden = [name for name in net.nodes if row.get(name) is None]
        listed = [
            {**row, **dict(zip(hidden, filled, strict=True))}
            for filled in itertools.product((0, 1), repeat=len(hidden))
        ]
        total += np.log(sum(np.prod([_entry(net, name, one) for name in net.nodes]) for one in listed))
    more = sum(float(np.log(net.table(name).values).sum()) for name in net.nodes) if added else 0.0
    return float(total) + added * more


def _entry(net: Any, name: str, row: Any) -> float:
    table = net.table(name)
    place = tuple(
        variable.states.index(row[variable.name]) for variable in (table.domain[at] for at in table.domain.names)
    )
    return float(table.values[place])


def _linear_value(net: Any) -> float:
    total: Any = 0.0
    for name in net.nodes:
        node = net.node(name)
        columns = [np.ones(80), *(NUMBERS[parent] for parent in node.domain.names[:-1])]
        mean = np.column_stack(columns) @ np.ravel(node.weights_)
        total += np.sum(stats.norm.logpdf(NUMBERS[name], mean, float(np.ravel(node.variance_)[0]) ** 0.5))
    return float(total)


def _poisson_value(net: Any) -> float:
    beta, node = net.node("n").learned.beta[:, 0], net.node("u")
    found = np.sum(stats.poisson.logpmf(COUNTS_BY_U["n"], np.exp(beta[0] + beta[1] * COUNTS_BY_U["u"])))
    spread = float(np.ravel(node.variance_)[0]) ** 0.5
    return float(found + np.sum(stats.norm.logpdf(COUNTS_BY_U["u"], float(np.ravel(node.weights_)[0]), spread)))


def _network(rows: Any, value: Any, spoil: Spoil, *structure: Any, **options: Any) -> Case:
    def fit() -> Any:
        return sf.BayesianNetwork(*structure, **options).fit(rows)

    return Case(fit, spoil, value, len(next(iter(rows.values()))))


CLIMBED = "suffice.models.em.latent.fixed_point"
NETWORKS = {
    "network": _network(BITS, lambda net: _table_value(net, BITS), _nodes(_flatter), EDGES),
    "network-mean": _network(BITS, lambda net: _table_value(net, BITS, 1.5), _nodes(_flatter), EDGES, prior=1.5),
    "network-mode": _network(
        BITS, lambda net: _table_value(net, BITS, 0.5), _nodes(_flatter), EDGES, prior=1.5, estimate="map"
    ),
    "network-linear": _network(NUMBERS, _linear_value, _nodes(lambda x: x + 0.1), [("u", "v"), ("w", "v")]),
    "network-noisy-or": _network(
        BITS, lambda net: _table_value(net, BITS), _nodes(_flatter), EDGES, nodes={"c": sf.NoisyOr()}
    ),
    "network-noisy-max": _network(
        BITS, lambda net: _table_value(net, BITS), _nodes(_flatter), EDGES, nodes={"c": sf.NoisyMax()}
    ),
    "network-constrained": _network(
        BITS,
        lambda net: _table_value(net, BITS),
        _nodes(_flatter),
        EDGES,
        nodes={"c": sf.ConstrainedTable({"a": "+"}, bounds={1: (0.3, None)})},
    ),
    "network-glm": _network(
        COUNTS_BY_U, _poisson_value, _nodes(lambda x: x + 0.1), [("u", "n")], nodes={"n": sf.GLM(family=sf.Poisson())}
    ),
    "network-tied": _network(
        {"r": BITS["a"], "s": BITS["b"], "t": BITS["c"]},
        lambda net: _table_value(net, {"r": BITS["a"], "s": BITS["b"], "t": BITS["c"]}),
        _nodes(_flatter),
        [("r", "s"), ("s", "t")],
        tied=[["s", "t"]],
    ),
    "network-gaps": _network(HOLES, lambda net: _table_value(net, HOLES), ended(CLIMBED, _flatter), EDGES),
    "network-gaps-squarem": _network(
        HOLES, lambda net: _table_value(net, HOLES), ended(CLIMBED, _flatter), EDGES, acceleration="squarem"
    ),
    "network-hidden": _network(
        class_rows(80),
        lambda net: _table_value(net, class_rows(80)),
        ended(CLIMBED, _flatter),
        CLASSES,
        hidden={"H": [0, 1]},
        random_state=0,
        max_iter=5_000,
    ),
}

# -- Markov networks ---------------------------------------------------------------------------------------------------

STATES = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}
CELLS = np.array([4.0, 1, 3, 2, 7, 3, 2, 2, 5, 1, 1, 6])
TABLE = sf.Table(sf.Domain([sf.Variable.discrete(n, s) for n, s in STATES.items()]), CELLS.reshape(2, 3, 2))
TRIANGLE, PATH = [("A", "B"), ("B", "C"), ("C", "A")], [("A", "B"), ("B", "C")]
NORMAL, LAPLACE = sf.Normal(variance=0.5), sf.Laplace(scale=0.4)
SIZES = {NORMAL: lambda w: float(w @ w), LAPLACE: lambda w: float(np.abs(w).sum() / 0.4)}


def _weighed(prior: Any, w: Any) -> float:
    """What a prior takes off: w.w / (2 variance) of a normal one, |w| / scale of Laplace's."""
    return 0.0 if prior is None else SIZES[prior](w)


def _markov(solver: Any, cliques: Any = None, prior: Any = None) -> Case:
    cliques = TRIANGLE if cliques is None else cliques
    design = design_of(table_features(cliques, STATES), STATES)

    def value(net: Any) -> float:
        log_z, _ = law_of(design, net.weights_)
        return float(CELLS @ design @ net.weights_ - CELLS.sum() * log_z) - _weighed(prior, net.weights_)

    def spoil(monkeypatch: Any) -> None:
        from suffice.models.markov import learning

        def wrong(method: Any) -> Any:
            def solve(*given: Any, **options: Any) -> Any:
                weights, outcome = method(*given, **options)
                return shifted(0.3)(weights), outcome

            return solve

        named = learning.method_named
        monkeypatch.setattr(learning, "method_named", lambda name: replace(named(name), solve=wrong(named(name).solve)))

    def fit() -> Any:
        return sf.MarkovNetwork(cliques, solver=solver, prior=prior).fit(TABLE)

    return Case(fit, spoil, value, CELLS.sum())


SPINS = [("p", "q"), ("q", "r"), ("r", "s"), ("s", "p")]
SPIN_STATES: dict[str, list[int]] = {name: [-1, 1] for name in "pqrs"}
SPIN_ROWS = {
    name: np.asarray(column).tolist()
    for name, column in sf.MarkovNetwork.ising(SPINS)
    .with_weights([0.2, -0.1, 0.1, 0.0, 0.4, 0.3, 0.5, 0.2])
    .sample(400, random_state=3)
    .items()
}


def _spin_table() -> Any:
    return np.array([[row[name] for name in "pqrs"] for row in _listed(SPIN_ROWS)], dtype=float)


def _listed(rows: Any) -> list[dict[Any, Any]]:
    return [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]


def _fields_and_couplings(net: Any) -> tuple[Any, Any]:
    """Fields (4,) and couplings (4, 4), symmetric."""
    fields, couplings = np.zeros(4), np.zeros((4, 4))
    for name, weight in zip(net.weight_names_, net.weights_, strict=True):
        nodes = [node for node in "pqrs" if node in str(name).replace("coupling", "").replace("field", "")]
        at = ["pqrs".index(node) for node in nodes]
        if len(at) == 1:
            fields[at[0]] = weight
        else:
            couplings[at[0], at[1]] = couplings[at[1], at[0]] = weight
    return fields, couplings


def _spin_likelihood(net: Any) -> float:
    fields, couplings = _fields_and_couplings(net)
    every = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))
    rows = _spin_table()

    def score(x: Any) -> Any:
        return x @ fields + 0.5 * np.einsum("ni,ij,nj->n", x, couplings, x)

    return float(score(rows).sum() - len(rows) * np.log(np.exp(score(every)).sum()))


def _pseudo_value(prior: Any) -> Callable[[Any], float]:
    def value(net: Any) -> float:
        fields, couplings = _fields_and_couplings(net)
        x = _spin_table()
        pull = fields + x @ couplings
        return float(-np.log1p(np.exp(-2.0 * x * pull)).sum()) - _weighed(prior, net.weights_)

    return value


ASCENT = "suffice.models.markov.approximate.solvers.stochastic_ascent"
LBFGS, OWLQN = "suffice.solvers.gradient.lbfgs", "suffice.solvers.gradient.owlqn"


def _sampled(solver: str, spoil: Spoil, value: Any = None, prior: Any = None) -> Case:
    def fit() -> Any:
        return sf.MarkovNetwork.ising(SPINS, solver=solver, prior=prior, random_state=0).fit(SPIN_ROWS)

    return Case(fit, spoil, value, 400.0, sampled=True)


def _latent(rows: Any, structure: Any, oracle: Any, spoil: Spoil, **options: Any) -> Case:
    def value(net: Any) -> float:
        return float(oracle.rows(net.weights_).sum()) - 0.5 * float(net.weights_ @ net.weights_)

    def fit() -> Any:
        made = sf.MarkovNetwork(structure, prior=sf.Normal(variance=1.0), random_state=0, max_iter=5_000, **options)
        return made.fit(rows)

    return Case(fit, spoil, value, len(next(iter(rows.values()))))


CLASS_ROWS, CYCLE_GAPS = class_rows(80), cycle_rows(80, 2, 0.2)[1]
LATENT = "suffice.models.em.latent."
HIDDEN = "suffice.models.markov.hidden.problem."
SLOPING = ("lbfgs", "newton", "newton-cg", "cg", "ascent")
TABLES_ONLY = ("ipf", "gis", "gis-cyclic", "ascent-potentials")
MARKOV = {
    **{f"markov-{solver}": _markov(solver) for solver in ("auto", *TABLES_ONLY, *SLOPING)},
    **{f"markov-path-{solver}": _markov(solver, PATH) for solver in ("closed-form", "ipf", "newton")},
    **{f"markov-normal-{solver}": _markov(solver, prior=NORMAL) for solver in SLOPING},
    "markov-laplace-owlqn": _markov("owlqn", prior=LAPLACE),
    "markov-sml": _sampled("sml", ended(ASCENT, shifted(0.5)), _spin_likelihood),
    "markov-hidden-sml": Case(
        lambda: sf.MarkovNetwork(
            CLASSES, hidden={"H": 2}, solver="sml", prior=sf.Normal(variance=1.0), random_state=0
        ).fit(CLASS_ROWS),
        ended("suffice.models.markov.hidden.clamped.stochastic_ascent", shifted(0.7)),
        lambda net: float(class_oracle(CLASS_ROWS).rows(net.weights_).sum()) - 0.5 * float(net.weights_ @ net.weights_),
        80.0,
        sampled=True,
    ),
    "markov-cd": _sampled("cd", ended(ASCENT, shifted(0.5))),
    "markov-pseudolikelihood": _sampled("pseudolikelihood", ended(LBFGS, shifted(0.3)), _pseudo_value(None)),
    "markov-pseudolikelihood-normal": _sampled(
        "pseudolikelihood", ended(LBFGS, shifted(0.3)), _pseudo_value(NORMAL), NORMAL
    ),
    "markov-pseudolikelihood-laplace": _sampled(
        "pseudolikelihood", ended(OWLQN, shifted(0.3)), _pseudo_value(LAPLACE), LAPLACE
    ),
    "markov-loopy-bp": _sampled("loopy-bp", ended(LBFGS, shifted(0.3))),
    "markov-gaps": _latent(CYCLE_GAPS, CYCLE, cycle_oracle(CYCLE_GAPS), ended(LATENT + "fixed_point", shifted(0.3))),
    "markov-gaps-squarem": _latent(
        CYCLE_GAPS, CYCLE, cycle_oracle(CYCLE_GAPS), ended(LATENT + "fixed_point", shifted(0.3)), acceleration="squarem"
    ),
    "markov-hidden": _latent(
        CLASS_ROWS, CLASSES, class_oracle(CLASS_ROWS), ended(LATENT + "fixed_point", shifted(0.3)), hidden={"H": 2}
    ),
    "markov-hidden-lbfgs": _latent(
        CLASS_ROWS,
        CLASSES,
        class_oracle(CLASS_ROWS),
        ended(HIDDEN + "lbfgs", shifted(0.3)),
        hidden={"H": 2},
        acceleration="lbfgs",
    ),
}

# -- normal graphs -----------------------------------------------------------------------------------------------------

RING, ARC = [(k, (k + 1) % 5) for k in range(5)], [(0, 1), (1, 2), (2, 3), (3, 4)]
WIDE = np.random.default_rng(21).standard_normal((40, 5)) @ np.random.default_rng(22).standard_normal((5, 5))


def _graph(solver: Any, edges: Any, prior: Any = None) -> Case:
    def value(graph: Any) -> float:
        K, away = graph.precision_, WIDE - graph.mean_
        found = 20.0 * np.linalg.slogdet(K)[1] - 0.5 * float(np.vdot(away @ K, away))
        if prior is None:
            found -= 100.0 * np.log(2.0 * np.pi)
        else:  # Then the objective is known up to a constant.
            rows, columns = np.array([(k, k) for k in range(5)] + [tuple(sorted(edge)) for edge in edges]).T
            found -= 0.5 * float((K[rows, columns] ** 2).sum()) / 50.0
        return float(found)

    def wrong(learned: Any) -> Any:
        K = learned.precision * 1.2
        K[0, 1] = K[1, 0] = 0.8 * K[0, 1]
        return replace(learned, precision=K)

    def fit() -> Any:
        return sf.GaussianGraph(edges, nodes=range(5), solver=solver, prior=prior).fit(WIDE)

    return Case(fit, patched("suffice.models.gaussian_graph.task.learn", wrong), value, 40.0)


GRAPHS = {
    **{f"graph-{solver}": _graph(solver, RING) for solver in ("auto", "newton", "ipf", "regression")},
    "graph-closed-form": _graph("closed-form", ARC),
    "graph-normal-newton": _graph("newton", RING, sf.Normal(variance=50.0)),
}

# -- chains ------------------------------------------------------------------------------------------------------------

TEXTS = ["abbac", "cabab", "acb", "bbca", "ca", "abcabc"]


def _row_value(chain: Any, added: float) -> float:
    """``sum (n + added) log p`` over the rows of a chain of order 1, that of first words among them."""
    total = 0.0
    for history in ("", *"abc"):
        pairs = [(text[at - 1] if at else "", word) for text in TEXTS for at, word in enumerate(text)]
        row = dict(zip(chain.states_, chain.row(["<s>"] if not history else [history]).values, strict=True))
        seen = [word for before, word in pairs if before == history]
        counted = {state: seen.count(state) + added for state in row}
        total += sum(number * np.log(row[state]) for state, number in counted.items() if number)
    return float(total)


def _evidence(chain: Any) -> float:
    """Of the rows after each state, as sequences, under the Dirichlet law that was learned."""
    alpha, total = np.asarray(chain.prior_.alpha_), 0.0
    for history in "abc":
        seen = [word for text in TEXTS for before, word in itertools.pairwise(text) if before == history]
        counts = np.array([seen.count(state) for state in chain.states_])
        total += special.gammaln(alpha.sum()) - special.gammaln(alpha.sum() + len(seen))
        total += float((special.gammaln(alpha + counts) - special.gammaln(alpha)).sum())
    return total


def _softened(law: Any) -> Any:
    """A law of order 1 whose rows are nearer to even ones."""
    level, p = law.levels.levels[1], np.exp(law.log_p[1])
    size = len(law.levels.levels[0])
    mass, kinds = np.bincount(level.history, p, minlength=size), np.bincount(level.history, p > 0, minlength=size)
    mixed = np.where(p > 0, 0.6 * p + 0.4 * mass[level.history] / np.maximum(kinds[level.history], 1), p)
    with np.errstate(divide="ignore"):
        return replace(law, log_p=(law.log_p[0], np.log(mixed)))


def _chain(spoil: Spoil, value: Any = None, **options: Any) -> Case:
    return Case(lambda: sf.MarkovChain(**options).fit(TEXTS), spoil, value, float(sum(map(len, TEXTS))))


SOLVING = "suffice.models.markov_chain.solve."
CHAINS = {
    "chain": _chain(
        patched(SOLVING + "maximum_likelihood_distribution", _softened), lambda chain: _row_value(chain, 0.0)
    ),
    "chain-mean": _chain(
        patched(SOLVING + "dirichlet_distribution", _softened), lambda chain: _row_value(chain, 0.5), prior=0.5
    ),
    "chain-mode": _chain(
        patched(SOLVING + "dirichlet_distribution", _softened),
        lambda chain: _row_value(chain, 2.0),
        prior=3.0,
        estimate="map",
    ),
    "chain-interpolation": _chain(
        ended("suffice.models.markov_chain.interpolation.learn_weights", lambda x: 0.5 * x + 0.3),
        order=2,
        smoothing=sf.Interpolation(),
    ),
    "chain-learned-prior": _chain(
        ended("suffice.models.markov_chain.hyper.fixed_point", lambda x: x + 0.7),
        _evidence,
        prior=1.0,
        learn_prior=True,
    ),
}

# -- hidden chains -----------------------------------------------------------------------------------------------------

SEEN, PATHS = ["abab", "bbaa", "aabb", "abba", "baab"], ["XXYY", "YXXY", "XYYX", "YYXX", "XYXY"]
STEPS = [[0.2, 0.1, 3.0, 3.3, 2.7, -0.2], [3.1, 2.9, 0.3, -0.4, 0.1], [0.4, 3.2, 2.5, 0.0, -0.3, 2.9]]


def _known_value(model: Any) -> float:
    total = 0.0
    for seen, path in zip(SEEN, PATHS, strict=True):
        codes = ["XY".index(state) for state in path]
        total += np.log(model.initial_[codes[0]])
        total += sum(np.log(model.transitions_[a, b]) for a, b in itertools.pairwise(codes))
        total += sum(
            np.log(model.emission_probabilities_[code, "ab".index(symbol)])
            for code, symbol in zip(codes, seen, strict=True)
        )
    return float(total)


def _hidden_value(density: Callable[[Any, int, Any], float], sequences: Any) -> Callable[[Any], float]:
    """The observed log-likelihood, every path of states listed."""

    def value(model: Any) -> float:
        total = 0.0
        for sequence in sequences:
            mass = 0.0
            for path in itertools.product(range(2), repeat=len(sequence)):
                p = model.initial_[path[0]] * np.prod([model.transitions_[a, b] for a, b in itertools.pairwise(path)])
                mass += p * np.prod([density(model, code, x) for code, x in zip(path, sequence, strict=True)])
            total += np.log(mass)
        return float(total)

    return value


def _symbol(model: Any, code: int, x: Any) -> float:
    return float(model.emission_probabilities_[code, "ab".index(x)])


def _normal(model: Any, code: int, x: Any) -> float:
    law = model.emissions_[code]
    return float(stats.norm.pdf(x, law.mean_, law.variance_**0.5))


def _known(monkeypatch: Any) -> None:
    from suffice.models.hidden_markov.learning import Learner

    right = Learner.learn

    def wrong(self: Any, statistics: Any, before: Any) -> Any:
        found = right(self, statistics, before)
        return replace(found, transitions=0.7 * found.transitions + 0.3 * np.eye(2))

    monkeypatch.setattr(Learner, "learn", wrong)


def _climbed(law: Any, sequences: Any, acceleration: Any) -> Any:
    model = sf.HiddenMarkovModel(2, law, random_state=0, max_iter=20_000, acceleration=acceleration)
    return model.fit(sequences)


BAUM_WELCH = "suffice.models.em.latent.fixed_point"
HIDDEN_CHAINS = {
    "hmm-known": Case(
        lambda: sf.HiddenMarkovModel(["X", "Y"], sf.Categorical()).fit(SEEN, PATHS), _known, _known_value, 20.0
    ),
    **{
        f"hmm-categorical-{acceleration}": Case(
            partial(_climbed, sf.Categorical(), SEEN, acceleration),
            ended(BAUM_WELCH, _flatter),
            _hidden_value(_symbol, SEEN),
            20.0,
        )
        for acceleration in (None, "squarem")
    },
    **{
        f"hmm-normal-{acceleration}": Case(
            partial(_climbed, sf.Normal(), STEPS, acceleration),
            ended(BAUM_WELCH, lambda x: np.concatenate([x[:6] * 0.7 + 0.15, x[6:]])),
            _hidden_value(_normal, STEPS),
            17.0,
        )
        for acceleration in (None, "squarem")
    },
}

# -- conditional random fields -----------------------------------------------------------------------------------------

PRIORS: dict[str, Any] = {"none": None, "normal": sf.Normal(variance=2.0), "laplace": sf.Laplace(0.5)}


def _label_penalty(kind: str, w: Any) -> float:
    return {"none": 0.0, "normal": float(w @ w) / 4.0, "laplace": float(np.abs(w).sum()) / 0.5}[kind]


def _sequences() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(int(length), 2)) for length in rng.integers(1, 5, 25)]
    return X, [[str(label) for label in rng.choice(list("ab"), len(x))] for x in X]


def _pictures() -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    X, y = [], []
    for size in rng.integers(2, 5, 25).tolist():
        ring = [(a, a + 1) for a in range(size - 1)] + ([(0, size - 1)] if size > 2 else [])
        X.append(sf.GraphExample(rng.normal(size=(size, 2)), ring))
        y.append([str(label) for label in rng.choice(list("ab"), size)])
    return X, y


SENTENCES, PICTURES = _sequences(), _pictures()


def _tagging_value(kind: str) -> Callable[[Any], float]:
    def value(model: Any) -> float:
        codes = [[model.labels_.index(label) for label in labels] for labels in SENTENCES[1]]
        found = path_likelihood(SENTENCES[0], codes, model.state_weights_, model.transition_weights_)
        weights = np.concatenate([model.state_weights_.ravel(), model.transition_weights_.ravel()])
        return float(found) - _label_penalty(kind, weights)

    return value


def _picture_value(kind: str) -> Callable[[Any], float]:
    def value(model: Any) -> float:
        tables, total = tables_of(model), 0.0
        for example, labels in zip(*PICTURES, strict=True):
            codes = [list(model.labels_).index(label) for label in labels]
            total += score_of(tables, example, codes) - Enumerated(tables, example, 2).log_z
        return total - _label_penalty(kind, np.concatenate([np.ravel(table) for table in tables.values()]))

    return value


LABELLED = "suffice.models.conditional_field.learning._solved"
EPOCHS = "suffice.models.chain_crf.stochastic|Stochastic.run"


def _labels(make: Any, data: Any, value: Any, kind: str, **options: Any) -> Case:
    spoil = ended(LABELLED, shifted(0.3))
    if options.get("solver") in ("sgd", "adam"):
        spoil = ended(EPOCHS, shifted(2.0))
        options = {"tolerance": 0.02, "max_iter": 400, "batch_size": 25, "random_state": 0, **options}
    return Case(lambda: make(PRIORS[kind], **options).fit(*data), spoil, None if value is None else value(kind), 25.0)


SOLVED = [("none", "lbfgs"), ("none", "newton"), ("normal", "lbfgs"), ("normal", "newton"), ("laplace", "owlqn")]
EPOCHAL = [("normal", "sgd"), ("normal", "adam")]
FIELDS = {
    **{
        f"tags-{kind}-{solver}": _labels(sf.ChainCRF, SENTENCES, _tagging_value, kind, solver=solver)
        for kind, solver in (*SOLVED, *EPOCHAL)
    },
    **{
        f"pictures-{kind}-{solver}": _labels(sf.GraphCRF, PICTURES, _picture_value, kind, solver=solver)
        for kind, solver in (*SOLVED, *EPOCHAL)
    },
    "pictures-loopy": _labels(sf.GraphCRF, PICTURES, None, "normal", inference="loopy"),
    "pictures-pseudo": _labels(sf.GraphCRF, PICTURES, None, "normal", max_cells=4),
    "pictures-gibbs": Case(
        lambda: sf.GraphCRF(PRIORS["normal"], inference="gibbs", max_cells=4, random_state=0).fit(*PICTURES),
        ended("suffice.models.graph_crf.ascent.stochastic_ascent", shifted(1.0)),
        scale=25.0,
        sampled=True,
    ),
}

CASES: dict[str, Case] = {**LAWS, **NETWORKS, **MARKOV, **GRAPHS, **CHAINS, **HIDDEN_CHAINS, **FIELDS}
