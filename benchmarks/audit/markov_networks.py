"""Random Markov networks of 2 to 6 variables: tables, features, Ising models, tied weights; all solvers and priors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import suffice as sf
from benchmarks.audit.judging import fitted_or_refused, value_record
from benchmarks.audit.log_linear import Group, LogLinear, Penalty
from benchmarks.audit.record import Coverage, Existence, Problem, Record

Floats = NDArray[np.float64]
Rng = np.random.Generator
Found = Iterator[Record]

#: Joint states at most: all of them are listed.
MOST_STATES = 64
WITHOUT_PRIOR = ("auto", "gis", "gis-cyclic", "lbfgs", "newton", "newton-cg", "cg", "ascent")
WITH_PRIOR = ("auto", "lbfgs", "newton", "newton-cg", "cg", "ascent")
PRIORS = ("no prior", "Normal", "full Normal", "Laplace")
#: These need very many steps where a maximum is far away; an estimate that has not converged is judged as well.
SLOW = ("gis", "gis-cyclic", "ascent", "ascent-potentials", "cg")
#: Data sets of a problem of intervals.
DATA_SETS = 5
Z95 = 1.959963984540054


@dataclass(frozen=True)
class Network:
    """A structure by its definition: names and cards of variables, terms, and features (joint states, weights)."""

    cards: dict[str, int]
    terms: list[Any]
    features: Floats
    decomposable: bool = False

    @property
    def states(self) -> dict[str, list[int]]:
        return {name: list(range(card)) for name, card in self.cards.items()}

    @property
    def is_tables(self) -> bool:
        return not any(isinstance(term, sf.Feature) for term in self.terms)

    @property
    def names(self) -> list[str]:
        return list(self.cards)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.cards.values())


# -- structures ------------------------------------------------------------------------------------------------------


def draw_cards(rng: Rng, least: int = 2, most: int = 6, card: int = 3) -> dict[str, int]:
    """Variables with their numbers of states, of at most MOST_STATES joint states."""
    while True:
        cards = rng.integers(1 if rng.random() < 0.1 else 2, card + 1, size=rng.integers(least, most + 1)).tolist()
        if math.prod(cards) <= MOST_STATES:
            return {f"v{place}": int(card) for place, card in enumerate(cards)}


def draw_scopes(rng: Rng, names: Sequence[str], largest: int = 3) -> list[tuple[str, ...]]:
    """Some cliques, in any order of their variables; none is named twice."""
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for _ in range(int(rng.integers(1, len(names) + 3))):
        size = int(rng.integers(1, min(largest, len(names)) + 1))
        scope = tuple(rng.choice(names, size=size, replace=False).tolist())
        found.setdefault(frozenset(scope), scope)
    return list(found.values())


def decomposable_scopes(rng: Rng, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Cliques with the running intersection property: each new variable joins a part of an earlier clique."""
    found: list[tuple[str, ...]] = [(names[0],)]
    for name in names[1:]:
        earlier = found[int(rng.integers(len(found)))]
        kept = [other for other in earlier if rng.random() < 0.6][:2]
        found.append((*kept, name))
    return found


def joint_codes(cards: dict[str, int]) -> NDArray[np.intp]:
    """All joint states (states, variables), the last variable fastest."""
    return np.array(list(itertools.product(*(range(card) for card in cards.values()))), dtype=np.intp)


def cells_of(codes: NDArray[np.intp], cards: dict[str, int], scope: Sequence[str]) -> NDArray[np.intp]:
    """The cell of a table over a scope that each joint state is in, in C order."""
    places = [list(cards).index(name) for name in scope]
    shape = [cards[name] for name in scope]
    return np.asarray(np.ravel_multi_index(tuple(codes[:, place] for place in places), shape), dtype=np.intp)


def network_of(
    cards: dict[str, int],
    terms: Sequence[Any],
    tables: Sequence[Any],
    decomposable: bool = False,
    *,
    centred: bool = False,
) -> Network:
    """A network of terms; tables: None for a clique, else the placements of a feature with the values on each.

    centred: take a constant off every feature, which changes no law; a large one would round sums of tied values.
    """
    codes, columns = joint_codes(cards), []
    for term, placed in zip(terms, tables, strict=True):
        if placed is None:
            size = math.prod(cards[name] for name in term)
            columns.append(np.eye(size)[cells_of(codes, cards, term)])
            continue
        total = np.zeros(len(codes))
        for scope, values in placed:
            flat = np.asarray(values, dtype=np.float64).ravel()
            total = total + (flat - flat[0] if centred else flat)[cells_of(codes, cards, scope)]
        columns.append(total[:, None])
    return Network(cards, list(terms), np.hstack(columns), decomposable)


def draw_tables(rng: Rng) -> Network:
    cards = draw_cards(rng)
    decomposable = rng.random() < 0.4
    scopes = decomposable_scopes(rng, list(cards)) if decomposable else draw_scopes(rng, list(cards))
    return network_of(cards, scopes, [None] * len(scopes), decomposable)


def draw_features(rng: Rng, offset: float = 0.0) -> Network:
    """Real-valued, 0/1, tied, constant and repeated features in any unit, some with tables beside them.

    offset: of the values, in spreads.
    """
    reach = float(rng.choice([0.5, 2.0, 6.0]))
    cards = draw_cards(rng, most=5)
    names, terms, tables = list(cards), list[Any](), list[Any]()
    for number in range(int(rng.integers(1, 6))):
        size = int(rng.integers(1, min(3, len(names)) + 1))
        scopes = [tuple(rng.choice(names, size=size, replace=False).tolist())]
        if rng.random() < 0.3:  # Tied: the same numbers on another tuple of the same shape.
            other = tuple(rng.choice(names, size=size, replace=False).tolist())
            if other != scopes[0] and [cards[v] for v in other] == [cards[v] for v in scopes[0]]:
                scopes.append(other)
        shape = [cards[name] for name in scopes[0]]
        values = (rng.random(shape) < 0.5) * 1.0 if rng.random() < 0.4 else rng.normal(size=shape)
        values = np.asarray(values * 10.0 ** (rng.uniform(-1, 1) * reach), dtype=np.float64)
        if rng.random() < 0.05:
            values = np.full(shape, values.flat[0])  # A constant, which no data tell.
        if tables and rng.random() < 0.1:  # The same as the last one, exactly, in another unit.
            scopes, values = [scope for scope, _ in tables[-1]], tables[-1][0][1] * rng.choice([-1.0, 0.5, 4.0])
        elif offset:
            values = values + offset * float(np.ptp(values))
        terms.append(sf.Feature(scopes, values, name=f"f{number}"))
        tables.append([(scope, values) for scope in scopes])
    if rng.random() < 0.3:
        terms.append((names[0],))
        tables.append(None)
    return network_of(cards, terms, tables, centred=offset != 0.0)


def draw_ising(rng: Rng) -> Network:
    """Fields and couplings of spins, written as features."""
    names = [f"v{place}" for place in range(int(rng.integers(2, 7)))]
    pairs = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.6] or [(names[0], names[1])]
    spin = np.array([-1.0, 1.0])
    terms: list[Any] = [sf.Feature(name, spin, name=f"field {name}") for name in names]
    tables: list[Any] = [[((name,), spin)] for name in names]
    terms += [sf.Feature(pair, np.outer(spin, spin), name=f"coupling {pair}") for pair in pairs]
    tables += [[(pair, np.outer(spin, spin))] for pair in pairs]
    return network_of(dict.fromkeys(names, 2), terms, tables)


# -- data ------------------------------------------------------------------------------------------------------------


def draw_counts(rng: Rng, network: Network, dense: bool) -> Floats:
    """Counts of all joint states: of a random law of the model, or few rows, so that many cells are empty."""
    n = len(network.features)
    if dense:
        return np.asarray(rng.integers(1, 30, size=n), dtype=np.float64)
    law, most = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0]))), int(rng.choice([3, n + 1, 3 * n + 3]))
    return np.asarray(rng.multinomial(int(rng.integers(1, most)), law), dtype=np.float64)


def draw_weighted(rng: Rng, counts: Floats) -> Floats:
    """Weights from 1e-9 to 1e8 in place of counts, or one unit for all of them."""
    if rng.random() < 0.5:
        return np.asarray(counts * 10.0 ** rng.uniform(-9, 8))
    return np.asarray(np.where(counts > 0, 10.0 ** rng.uniform(-9, 8, size=len(counts)), 0.0))


def fit_counts(rng: Rng, model: sf.MarkovNetwork, network: Network, counts: Floats, how: str = "") -> Any:
    """Fit joint counts as rows, as a contingency table, or as margins alone."""
    names, codes, seen = network.names, joint_codes(network.cards), counts > 0.0
    how = how or str(rng.choice(["rows", "table"]))
    if how == "table":
        domain = sf.Domain([sf.Variable.discrete(name, network.states[name]) for name in names])
        return model.fit(sf.Table(domain, counts.reshape(network.shape)))
    if how == "margins":
        margins: dict[Any, Any] = {}
        for term in network.terms:
            scopes: Any = term.placements if isinstance(term, sf.Feature) else (term,)
            for scope in scopes:
                size = [network.cards[name] for name in scope]
                table = np.bincount(cells_of(codes, network.cards, scope), weights=counts, minlength=math.prod(size))
                margins[tuple(scope)] = table.reshape(size)
        return model.fit(margins)
    rows = {name: codes[seen, place].tolist() for place, name in enumerate(names)}
    return model.fit(rows, sample_weight=counts[seen])


# -- priors ----------------------------------------------------------------------------------------------------------


def draw_prior(rng: Rng, kind: str, k: int) -> tuple[Any, Penalty]:
    """A prior, and the same by its definition."""
    none = Penalty.none(k)
    if kind == "no prior":
        return None, none
    if kind == "Laplace":
        scale = 10.0 ** rng.uniform(-1.5, 1.0)
        return sf.Laplace(scale=scale), Penalty(none.mean, none.precision, np.full(k, 1.0 / scale))
    mean = rng.normal(size=k) * (rng.random() < 0.5)
    if kind == "Normal":
        variance = 10.0 ** rng.uniform(-2, 2) * (np.ones(k) if rng.random() < 0.5 else 10.0 ** rng.uniform(-1, 1, k))
        return sf.Normal(mean=mean, variance=variance), Penalty(mean, np.diag(1.0 / variance), none.rate)
    root = rng.normal(size=(k, k + 2))
    covariance = root @ root.T / k + 0.1 * np.eye(k)
    precision = np.linalg.inv(covariance)
    return sf.MultivariateNormal(mean, covariance), Penalty(mean, (precision + precision.T) / 2, none.rate)


# -- problems: values and existence ----------------------------------------------------------------------------------


def judge(rng: Rng, network: Network, counts: Floats, what: str, prior: str = "no prior", how: str = "") -> Found:
    """Fit by a solver that is drawn, and compare with the oracle."""
    solver = draw_solver(rng, network, prior)
    given, penalty = draw_prior(rng, prior, network.features.shape[1])
    stopped = rng.random() < 0.2
    limit = 2 if stopped else 300 if solver in SLOW else 3_000
    oracle = LogLinear([Group(network.features, counts / counts.sum(), float(counts.sum()))], penalty)
    model = sf.MarkovNetwork(network.terms, states=network.states, prior=given, solver=solver, max_iter=limit)  # type: ignore[arg-type]
    fitted = fitted_or_refused(lambda: fit_counts(rng, model, network, counts, how))
    said = fitted if isinstance(fitted, str) else fitted.report_.certificate.exists
    yield Existence(f"MarkovNetwork {what}" + ("" if prior == "no prior" else ", a prior"), oracle.exists, said)
    if isinstance(fitted, str):
        return
    weights = np.asarray(fitted.weights_)
    if np.isfinite(weights).all():
        here = oracle.value(weights)
    else:  # On a face: the law itself.
        law = np.asarray(fitted.query(network.names).values, dtype=np.float64).ravel()
        here = float((counts / counts.sum())[counts > 0] @ np.log(law[counts > 0]))
    label = f"MarkovNetwork {'owlqn' if prior == 'Laplace' else solver}, {prior}"
    yield value_record(label + (", max_iter=2" if stopped else ""), fitted, oracle.optimum(), here)


def draw_solver(rng: Rng, network: Network, prior: str) -> str:
    """A solver that takes the network and the prior."""
    if prior != "no prior":
        return "auto" if prior == "Laplace" else str(rng.choice(WITH_PRIOR))
    choices = list(WITHOUT_PRIOR)
    if network.is_tables:
        choices += ["ipf", "ascent-potentials"] + ["closed-form"] * 3 * network.decomposable
    return str(rng.choice(choices))


def tables(rng: Rng) -> Found:
    network = draw_tables(rng)
    yield from judge(rng, network, draw_counts(rng, network, rng.random() < 0.4), "tables")


def weighted_tables(rng: Rng) -> Found:
    network = draw_tables(rng)
    yield from judge(rng, network, draw_weighted(rng, draw_counts(rng, network, rng.random() < 0.4)), "weighted tables")


def margins(rng: Rng) -> Found:
    network = draw_tables(rng) if rng.random() < 0.7 else draw_features(rng)
    yield from judge(rng, network, draw_counts(rng, network, rng.random() < 0.4), "margins alone", how="margins")


def features(rng: Rng) -> Found:
    network = draw_features(rng)
    yield from judge(rng, network, draw_counts(rng, network, rng.random() < 0.4), "features")


def features_with_offsets(rng: Rng) -> Found:
    network = draw_features(rng, offset=10.0 ** rng.uniform(0.0, 10.0) * rng.choice([-1.0, 1.0]))
    yield from judge(rng, network, draw_counts(rng, network, rng.random() < 0.4), "features with offsets")


def ising(rng: Rng) -> Found:
    network = draw_ising(rng)
    yield from judge(rng, network, draw_counts(rng, network, rng.random() < 0.4), "Ising")


def with_prior(rng: Rng) -> Found:
    network = (draw_tables, draw_features, draw_ising)[int(rng.integers(3))](rng)
    counts = draw_counts(rng, network, rng.random() < 0.4)
    if rng.random() < 0.2:
        counts = draw_weighted(rng, counts)
    yield from judge(rng, network, counts, "any", str(rng.choice(PRIORS)))


# -- problems: gaps and hidden variables -----------------------------------------------------------------------------


def with_gaps(rng: Rng) -> Found:
    """Rows with gaps, or a variable that no row shows: no bound may be claimed, and no ascent may find more nearby."""
    network = (draw_tables, draw_features, draw_ising)[int(rng.integers(3))](rng)
    counts = draw_counts(rng, network, dense=True)
    prior = str(rng.choice(["no prior", "Normal"]))
    given, penalty = draw_prior(rng, prior, network.features.shape[1])
    codes = joint_codes(network.cards)[rng.choice(len(counts), size=40, p=counts / counts.sum())]
    shown = rng.random(codes.shape) >= 0.2
    options: dict[str, Any] = {"states": network.states, "prior": given}
    names = network.names
    if rng.random() < 0.4:
        term = network.terms[0]
        never = str(term.variables[0] if isinstance(term, sf.Feature) else term[0])
        shown[:, names.index(never)] = False
        options |= {"hidden": {never: network.states[never]}, "random_state": int(rng.integers(1000))}
        options["states"] = {name: network.states[name] for name in names if name != never}
    rows = {
        name: [int(code) if seen else None for code, seen in zip(codes[:, at], shown[:, at], strict=True)]
        for at, name in enumerate(names)
        if name not in options.get("hidden", {})
    }
    model = sf.MarkovNetwork(network.terms, max_iter=200, **options)
    fitted = model.fit(rows)
    weights = np.asarray(fitted.weights_)
    certificate = fitted.report_.certificate
    if given is not None:
        yield Existence("MarkovNetwork EM, Normal", True, certificate.exists)
    if not np.isfinite(weights).all():
        return
    observed = ObservedRows(network, codes, shown, penalty)
    here, best = observed.value(weights), observed.nearby(weights)
    yield value_record(f"MarkovNetwork EM, {prior}", fitted, best, here)


class ObservedRows:
    """The log-likelihood of rows that do not show everything, every joint state listed."""

    def __init__(self, network: Network, codes: NDArray[np.intp], shown: NDArray[np.bool_], penalty: Penalty) -> None:
        """Which joint states fit each row (rows, states)."""
        self.features, self.penalty, self.n = network.features, penalty, len(codes)
        states = joint_codes(network.cards)
        self.fits = np.array(
            [((states == row) | ~seen).all(axis=1) for row, seen in zip(codes, shown, strict=True)], dtype=bool
        )

    def value(self, w: Floats) -> float:
        """The objective a row."""
        return self._with_slope(w)[0]

    def _with_slope(self, w: Floats) -> tuple[float, Floats]:
        whole = self.features @ w
        scores = np.where(self.fits, whole, -np.inf), whole[None, :]
        tops = [part.max(axis=1, keepdims=True) for part in scores]
        heights = [np.exp(part - top) for part, top in zip(scores, tops, strict=True)]
        sums = [part.sum(axis=1, keepdims=True) for part in heights]
        kept, free = (float(np.mean(top + np.log(total))) for top, total in zip(tops, sums, strict=True))
        inside, outside = ((part / total).mean(axis=0) for part, total in zip(heights, sums, strict=True))
        away = w - self.penalty.mean
        pull = self.penalty.precision @ away / self.n
        return kept - free - 0.5 * float(away @ pull), (inside - outside) @ self.features - pull

    def nearby(self, w: Floats) -> float:
        """The largest value that an ascent from w finds."""
        size = np.abs(self.features).max(axis=0)
        size = np.where(size > 0.0, size, 1.0)

        def loss(x: Floats) -> tuple[float, Floats]:
            value, slope = self._with_slope(x / size)
            return -value, -slope / size

        found = minimize(
            loss, w * size, jac=True, method="L-BFGS-B", options={"gtol": 1e-10, "ftol": 0.0, "maxiter": 500}
        )
        return max(-float(found.fun), self.value(w))


# -- problems: other objectives, intervals ---------------------------------------------------------------------------


def pseudolikelihood(rng: Rng) -> Found:
    """The maximum of the pseudo-likelihood, whose groups are the states of one variable given all others."""
    network = draw_ising(rng) if rng.random() < 0.5 else draw_features(rng)
    counts = draw_counts(rng, network, dense=True)
    prior = str(rng.choice(["no prior", "Normal", "Laplace"]))
    given, penalty = draw_prior(rng, prior, network.features.shape[1])
    options: dict[str, Any] = {"sampling": sf.GibbsSampling(chains=16, burn_in=20, draws=20), "random_state": 0}
    model = sf.MarkovNetwork(
        network.terms, states=network.states, prior=given, solver="pseudolikelihood", max_iter=3_000, **options
    )
    fitted = fit_counts(rng, model, network, counts, "rows")
    grid = np.arange(len(counts)).reshape(network.shape)
    groups, weight = [], counts.sum()
    for axis in range(grid.ndim):
        for line in np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis]):
            if (total := counts[line].sum()) > 0 and len(line) > 1:
                groups.append(Group(network.features[line], counts[line] / total, float(total)))
    if not groups:
        return
    oracle = LogLinear(groups, penalty)
    # A row is in as many groups as there are variables: the objective is the sum over them, of a row.
    times = oracle.weight / weight
    weights = np.asarray(fitted.weights_)
    best, here = times * oracle.optimum(), times * oracle.value(weights)
    yield value_record(f"MarkovNetwork pseudolikelihood, {prior}", fitted, best, here)


def intervals(rng: Rng) -> Found:
    """95 % Wald intervals of the weights of an Ising model: one weight of each of a few data sets."""
    network = draw_ising(rng)
    k = network.features.shape[1]
    weights = np.asarray(rng.normal(scale=0.3, size=k))
    scores = network.features @ weights
    law = np.exp(scores - scores.max())
    covered = 0
    for _ in range(DATA_SETS):
        counts = np.asarray(rng.multinomial(400, law / law.sum()), dtype=np.float64)
        fitted = fit_counts(rng, sf.MarkovNetwork(network.terms, states=network.states), network, counts, "table")
        place = int(rng.integers(k))
        covered += bool(abs(fitted.weights_[place] - weights[place]) <= Z95 * fitted.standard_errors_[place])
    yield Coverage("MarkovNetwork, Wald", covered, DATA_SETS)


PROBLEMS: dict[str, Problem] = {
    "markov-tables": tables,
    "markov-weighted-tables": weighted_tables,
    "markov-margins": margins,
    "markov-features": features,
    "markov-offsets": features_with_offsets,
    "markov-ising": ising,
    "markov-prior": with_prior,
    "markov-gaps": with_gaps,
    "markov-pseudolikelihood": pseudolikelihood,
    "markov-intervals": intervals,
}
