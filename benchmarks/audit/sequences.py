"""Random chains, seen and hidden: own counts, own leave-one-out, own forward and backward recursions in logarithms."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import suffice as sf
from benchmarks.audit.oracle import agreement, fitted, highest, shortfall, stationary, verdict
from benchmarks.audit.record import Coverage, Existence, Problem, Record, Value

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Sequences = list[list[int]]
START = "<s>"


def _sequences(rng: np.random.Generator, card: int, number: int, longest: int) -> Sequences:
    """Sequences of a chain of order 1."""
    rows = rng.dirichlet(np.full(card, 0.8), card + 1)
    found = []
    for _ in range(number):
        one = [int(rng.choice(card, p=rows[card]))]
        for _ in range(int(rng.integers(0, longest))):
            one.append(int(rng.choice(card, p=rows[one[-1]])))
        found.append(one)
    return found


def _events(sequences: Sequences, order: int) -> Counter[tuple[tuple[Any, ...], int]]:
    """How often each state followed each history; one that reaches before the start begins with the start mark."""
    found: Counter[tuple[tuple[Any, ...], int]] = Counter()
    for one in sequences:
        for at, state in enumerate(one):
            history = tuple(one[max(at - order, 0) : at])
            found[(START, *history) if at < order else history, state] += 1
    return found


# -- chains whose states are seen --------------------------------------------------------------------------------------


def _chain(rng: np.random.Generator) -> Iterator[Record]:
    """Relative frequencies and pseudo-counts: each row has its optimum by Gibbs' inequality."""
    order, card = int(rng.integers(0, 4)), int(rng.integers(2, 4))
    sequences = _sequences(rng, card, int(rng.choice([3, 20, 200])), int(rng.choice([4, 15])))
    events = _events(sequences, order)
    total = sum(events.values())
    histories = sorted({history for history, _ in events}, key=repr)
    counts = np.array([[events[history, state] for state in range(card)] for history in histories], dtype=np.float64)
    weight = float(rng.choice([0.5, 2.0]))
    for name, options, added in (
        ("MarkovChain", {}, 0.0),
        ("MarkovChain, posterior mean", {"prior": weight}, weight),
        ("MarkovChain, MAP", {"prior": weight + 1, "estimate": "map"}, weight),
    ):
        chain = fitted(sf.MarkovChain(order, states=list(range(card)), **options), sequences)
        yield verdict(name, chain, bool(counts.min() > 0) or added > 0)
        said = np.array([[chain.probability(s, [] if order == 0 else list(h)) for s in range(card)] for h in histories])
        whole = counts + added
        best = float(special.xlogy(whole, whole / whole.sum(axis=1, keepdims=True)).sum())
        yield shortfall(name, chain, float(special.xlogy(whole, said).sum()), best, total)
        if name == "MarkovChain, posterior mean" and chain.report_.log_evidence is not None:
            evidence = special.gammaln(whole).sum() - counts.size * special.gammaln(weight)
            evidence -= np.sum(special.gammaln(whole.sum(axis=1)) - special.gammaln(weight * card))
            yield agreement(f"{name}, log evidence", chain.report_.log_evidence, float(evidence), total, 1e-11)


def _deleted(rng: np.random.Generator) -> Iterator[Record]:
    """Each transition taken out by hand, and scored by what is left: the weight that scores best."""
    card = int(rng.integers(2, 6))
    sequences = _sequences(rng, card, int(rng.choice([2, 6, 30])), 12)
    singles = Counter(state for one in sequences for state in one[1:])  # First states follow nothing.
    pairs = Counter((a, b) for one in sequences for a, b in itertools.pairwise(one))
    rows = Counter(a for one in sequences for a in one[:-1])
    whole = sum(singles.values())
    own, shorter, number = [], [], []
    for (a, b), count in pairs.items():
        if rows[a] > 1 and whole > 1:
            own.append((count - 1) / (rows[a] - 1))
            shorter.append((singles[b] - 1) / (whole - 1))
            number.append(count)
    p, q, n = np.array(own), np.array(shorter), np.array(number, dtype=np.float64)
    keep = (p + q > 0) & (p != q) if len(p) else np.zeros(0, dtype=np.bool_)
    p, q, n = p[keep], q[keep], n[keep]
    if not len(n):
        return

    def score(weight: float) -> float:
        with np.errstate(divide="ignore"):
            return float(n @ np.log(weight * q + (1 - weight) * p))

    low, high = 0.0, 1.0  # The score is concave in the weight: halve where its slope changes sign.
    for _ in range(60):
        middle = 0.5 * (low + high)
        rises = float(n @ ((q - p) / (middle * q + (1 - middle) * p))) > 0
        low, high = (middle, high) if rises else (low, middle)
    best = max(score(low), score(0.0), score(1.0))
    ways: tuple[tuple[str, dict[str, Any]], ...] = (("", {}), (", max_iter=2", {"max_iter": 2}))
    for name, options in ways:
        chain = fitted(sf.MarkovChain(1, states=list(range(card)), smoothing="deleted", **options), sequences)
        reached = score(float(chain.interpolation_weight_))
        events = float(n.sum())
        yield shortfall(f"MarkovChain, deleted interpolation{name}", chain, reached, max(best, reached), events)
        if not name and chain.converged_:
            rise = max(best - reached, 0.0) / events
            yield Value("MarkovChain, deleted interpolation: rise", rise, 1e-8, True, True)


def _chain_errors(rng: np.random.Generator) -> Iterator[Record]:
    rows = rng.dirichlet([3.0, 3.0], 2)
    covered = 0
    for _ in range(5):
        one = [0]
        for _ in range(400):
            one.append(int(rng.random() > rows[one[-1], 0]))
        chain = fitted(sf.MarkovChain(states=[0, 1]), [one])
        error = float(chain.standard_errors_.values[0, 0])
        covered += int(abs(float(chain.transitions_.values[0, 0]) - rows[0, 0]) <= 1.96 * error)
    yield Coverage("MarkovChain, standard errors", covered, 5)


# -- chains whose states are hidden ------------------------------------------------------------------------------------


def _log_sum(values: Floats, axis: int) -> Floats:
    """Log of the sum of exponentials along an axis."""
    return np.asarray(np.logaddexp.reduce(values, axis=axis))


@dataclass(frozen=True)
class Hidden:
    """Sequences of one length (n, T), their laws (symbols, or normal where None), and pseudo-counts of every cell."""

    x: NDArray[Any]
    states: int
    symbols: int | None
    weight: float = 0.0

    def look(self, initial: Floats, transitions: Floats, emissions: Floats) -> tuple[float, Floats, Floats, Floats]:
        """The objective, the expected first states and transitions, and the posteriors (n, T, K)."""
        with np.errstate(divide="ignore"):
            first, step = np.log(initial), np.log(transitions)
            if self.symbols is None:
                mean, variance = emissions
                seen = -0.5 * (np.log(2 * np.pi * variance) + (self.x[:, :, None] - mean) ** 2 / variance)
            else:
                seen = np.log(emissions).T[self.x]
        length = self.x.shape[1]
        ahead, behind = np.empty(seen.shape), np.zeros(seen.shape)
        ahead[:, 0] = first + seen[:, 0]
        for t in range(1, length):
            ahead[:, t] = _log_sum(ahead[:, t - 1, :, None] + step, axis=1) + seen[:, t]
        for t in range(length - 2, -1, -1):
            behind[:, t] = _log_sum(step + (seen[:, t + 1] + behind[:, t + 1])[:, None, :], axis=2)
        value = _log_sum(ahead[:, -1], axis=1)
        posterior = np.exp(ahead + behind - value[:, None, None])
        moves = np.zeros((self.states, self.states))
        for t in range(1, length):
            both = ahead[:, t - 1, :, None] + step + (seen[:, t] + behind[:, t])[:, None, :] - value[:, None, None]
            moves += np.exp(both).sum(axis=0)
        extra = 0.0
        if self.weight:
            extra = self.weight * float(first.sum() + step.sum())
            extra += self.weight * float(np.log(emissions).sum()) if self.symbols is not None else 0.0
        return float(value.sum()) + extra, posterior[:, 0].sum(axis=0), moves, posterior

    def climb(self, initial: Floats, transitions: Floats, emissions: Floats, least: float = 0.0) -> float:
        """The local optimum that a search finds from these parameters; no variance falls below `least`."""
        k = self.states

        def unpack(free: Floats) -> tuple[Floats, Floats, Floats]:
            start, moves, rest = free[:k], free[k : k + k * k].reshape(k, k), free[k + k * k :]
            if self.symbols is None:
                laws = np.stack([rest[:k], np.exp(rest[k:])])
            else:
                laws = special.softmax(rest.reshape(k, -1), axis=1)
            return special.softmax(start), special.softmax(moves, axis=1), laws

        def value(free: Floats) -> float:
            found = unpack(free)
            if self.symbols is None and found[2][1].min() < least:
                return -np.inf
            return self.look(*found)[0]

        def slope(free: Floats) -> Floats:
            found = unpack(free)
            _, begun, moves, posterior = self.look(*found)
            begun, moves = begun + self.weight, moves + self.weight
            parts = [begun - begun.sum() * found[0], moves - moves.sum(axis=1, keepdims=True) * found[1]]
            if self.symbols is None:
                mean, variance = found[2]
                off = self.x[:, :, None] - mean
                parts.append((posterior * off / variance).sum(axis=(0, 1)))
                parts.append((posterior * 0.5 * (off**2 / variance - 1)).sum(axis=(0, 1)))
            else:
                shown = np.stack([posterior[self.x == s].sum(axis=0) for s in range(self.symbols)], axis=1)
                shown = shown + self.weight
                parts.append(shown - shown.sum(axis=1, keepdims=True) * found[2])
            return np.concatenate([np.ravel(part) for part in parts])

        logs = [np.log(np.maximum(part, 1e-12)).ravel() for part in (initial, transitions)]
        if self.symbols is None:
            laws = np.concatenate([emissions[0], np.log(emissions[1])])
        else:
            laws = np.log(np.maximum(emissions, 1e-12)).ravel()
        return highest(value, np.concatenate([*logs, laws]), gradient=slope)


def _hidden_rows(rng: np.random.Generator, states: int, n: int, length: int) -> Codes:
    """Paths of hidden states (n, length) that stay a while."""
    moves = 0.7 * np.eye(states) + 0.3 * rng.dirichlet(np.ones(states), states)
    paths = np.empty((n, length), dtype=np.intp)
    paths[:, 0] = rng.integers(0, states, n)
    for t in range(1, length):
        paths[:, t] = (rng.random((n, 1)) > np.cumsum(moves[paths[:, t - 1]], axis=1)).sum(axis=1)
    return np.minimum(paths, states - 1)


WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {}),
    (", prior", {"prior": 1.0}),
    (", squarem", {"acceleration": "squarem"}),
    (", max_iter=2", {"max_iter": 2}),
)


def _hidden_symbols(rng: np.random.Generator) -> Iterator[Record]:
    states, symbols = 2, int(rng.integers(2, 5))
    paths = _hidden_rows(rng, states, int(rng.choice([8, 30])), 12)
    laws = rng.dirichlet(np.full(symbols, 0.7), states)
    x = np.minimum((rng.random((*paths.shape, 1)) > np.cumsum(laws, axis=1)[paths]).sum(axis=2), symbols - 1)
    way, options = WAYS[int(rng.integers(len(WAYS)))]
    name = f"HiddenMarkovModel symbols{way}"
    law = sf.Categorical(states=list(range(symbols)))
    model = fitted(sf.HiddenMarkovModel(states, law, random_state=int(rng.integers(99)), **options), x.tolist())
    if model is None:
        return
    oracle = Hidden(x, states, symbols, float(options.get("prior", 0.0)))
    at = (model.initial_, model.transitions_, model.emission_probabilities_)
    reached = oracle.look(*at)[0]
    plain = Hidden(x, states, symbols).look(*at)[0]
    yield agreement(f"{name}: log-likelihood", model.report_.log_likelihood, plain, x.size, 1e-10)
    yield from stationary(name, model, reached, max(oracle.climb(*at), reached), x.size)
    if options.get("prior"):
        yield verdict(f"{name}: existence", model, True)
    elif len(np.unique(x)) < symbols:
        yield verdict(f"{name}: existence", model, False)


def _hidden_normal(rng: np.random.Generator) -> Iterator[Record]:
    states = 2
    paths = _hidden_rows(rng, states, int(rng.choice([5, 20])), 15)
    unit = float(10.0 ** rng.integers(-4, 5)) if rng.random() < 0.3 else 1.0
    x = unit * (rng.normal(size=paths.shape) * np.array([1.0, 0.6])[paths] + np.array([0.0, rng.uniform(1, 5)])[paths])
    way, options = WAYS[int(rng.choice([0, 2, 3]))]
    name = f"HiddenMarkovModel normal{way}"
    model = fitted(sf.HiddenMarkovModel(states, sf.Normal(), random_state=int(rng.integers(99)), **options), list(x))
    if model is None:
        return
    oracle = Hidden(x / unit, states, None)
    laws = np.array([[law.mean_ / unit, law.variance_ / unit**2] for law in model.emissions_]).T
    at = (model.initial_, model.transitions_, laws)
    reached = oracle.look(*at)[0]
    said = model.report_.log_likelihood + x.size * np.log(unit)
    yield agreement(f"{name}: log-likelihood", said, reached, x.size, 1e-10)
    least = 0.999e-6 * float(np.var(x / unit))
    if laws[1].min() > 2 * least:
        yield from stationary(name, model, reached, max(oracle.climb(*at, least), reached), x.size)
    else:
        yield verdict(f"{name}: existence", model, False)


def _counted(rng: np.random.Generator) -> Iterator[Record]:
    """Known states: three tables of counts."""
    states, symbols = 2, int(rng.integers(2, 4))
    paths = _hidden_rows(rng, states, int(rng.choice([2, 6, 40])), int(rng.choice([4, 15])))
    laws = rng.dirichlet(np.full(symbols, 0.8), states)
    x = np.minimum((rng.random((*paths.shape, 1)) > np.cumsum(laws, axis=1)[paths]).sum(axis=2), symbols - 1)
    first = np.bincount(paths[:, 0], minlength=states).astype(float)
    moves, shown = np.zeros((states, states)), np.zeros((states, symbols))
    np.add.at(moves, (paths[:, :-1].ravel(), paths[:, 1:].ravel()), 1.0)
    np.add.at(shown, (paths.ravel(), x.ravel()), 1.0)
    if min(moves.sum(axis=1).min(), shown.sum(axis=1).min()) == 0:
        return
    seen = min(first.min(), moves.min(), shown.min()) > 0
    ways: tuple[tuple[str, dict[str, Any], float], ...] = (("", {}, 0.0), (", prior", {"prior": 0.7}, 0.7))
    for name, options, added in ways:
        law = sf.Categorical(states=list(range(symbols)))
        model = fitted(sf.HiddenMarkovModel(list(range(states)), law, **options), x.tolist(), states=paths.tolist())
        label = f"HiddenMarkovModel, known states{name}"
        yield verdict(label, model, seen or added > 0)
        parts = zip(
            (first[None], moves, shown),
            (model.initial_[None], model.transitions_, model.emission_probabilities_),
            strict=True,
        )
        reached = best = 0.0
        for counts, said in parts:
            whole = counts + added
            reached += float(special.xlogy(whole, said).sum())
            best += float(special.xlogy(whole, whole / whole.sum(axis=1, keepdims=True)).sum())
        yield shortfall(label, model, reached, best, x.size)


def _not_identified(rng: np.random.Generator) -> Iterator[Record]:
    """Pairs of two symbols have three free cells; two hidden states have five parameters."""
    x = rng.integers(0, 2, (int(rng.choice([50, 200])), 2)).tolist()
    law, seed = sf.Categorical(states=[0, 1]), int(rng.integers(99))
    model = fitted(sf.HiddenMarkovModel(2, law, random_state=seed, tolerance=1e-4), x)
    curvature = model.report_.certificate.curvature
    if curvature is not None:
        yield Existence("HiddenMarkovModel: identified", False, curvature.point == "maximum")


def _hidden_errors(rng: np.random.Generator) -> Iterator[Record]:
    """Two laws far apart: errors of a mean and of a transition by the observed information."""
    stay = rng.uniform(0.6, 0.9, 2)
    moves = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
    paths = np.zeros((4, 150), dtype=np.intp)
    for t in range(1, 150):
        paths[:, t] = rng.random(4) > moves[paths[:, t - 1], 0]
    x = rng.normal(size=paths.shape) + np.array([0.0, 3.5])[paths]
    model = fitted(sf.HiddenMarkovModel(2, sf.Normal(), random_state=0), list(x))
    low = int(np.argmin([law.mean_ for law in model.emissions_]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = float(np.asarray(model.standard_errors_of(list(x))["transitions"])[low, low])
    if np.isfinite(error):
        covered = abs(float(model.transitions_[low, low]) - moves[0, 0]) <= 1.96 * error
        yield Coverage("HiddenMarkovModel, standard errors", int(covered), 1)


PROBLEMS: dict[str, Problem] = {
    "MarkovChain": _chain,
    "MarkovChain, deleted interpolation": _deleted,
    "MarkovChain, standard errors": _chain_errors,
    "HiddenMarkovModel symbols": _hidden_symbols,
    "HiddenMarkovModel normal": _hidden_normal,
    "HiddenMarkovModel, known states": _counted,
    "HiddenMarkovModel, not identified": _not_identified,
    "HiddenMarkovModel, standard errors": _hidden_errors,
}
