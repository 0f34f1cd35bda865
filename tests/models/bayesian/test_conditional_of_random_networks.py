"""Random networks trained for P(target | rest), beside L-BFGS of SciPy on their tables written out by hand.

Where the target's tables are those of a tree over it, the objective is that of a logistic regression (Roos and others,
2005): there the maximum is one, and must be reached. Elsewhere there may be several. What is claimed to be left
is never less than what the best of several starts finds, at the end and before it.
"""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize as scipy_optimize

import suffice as sf

#: Its declared types do not know functions that return a value and its slope.
optimize: Any = scipy_optimize

SEEDS = range(10)
STEPS = [1, 3, 6]


class Instance:
    """A structure, rows and weights; the tables that see the target are one vector of logits."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rng, self.tree = rng, seed % 2 == 0
        children = [f"c{k}" for k in range(rng.integers(2, 5))]
        self.parents: dict[str, tuple[str, ...]] = {"p": (), "q": (), "t": () if self.tree else ("p",)}
        for k, child in enumerate(children):
            before = [children[rng.integers(0, k)]] if k and rng.random() < 0.6 else []
            beside = [] if self.tree else [name for name in "pq" if rng.random() < 0.4]
            self.parents[child] = ("t", *before, *beside)
        self.cards = {name: int(rng.integers(2, 4)) for name in self.parents}
        n = int(rng.integers(100, 300))
        self.rows = {name: rng.integers(0, card, n) for name, card in self.cards.items()}
        for child in children:
            self.rows[child] = np.where(rng.random(n) < 0.3, self.rows["t"] % self.cards[child], self.rows[child])
        self.weights = rng.choice([0.5, 1.0, 2.0], n)
        self.prior = float(rng.choice([0.4, 1.5])) if seed % 5 == 3 else None
        self.names = [name for name, above in self.parents.items() if name == "t" or "t" in above]
        self._cells, first = [], 0
        self._spans: list[tuple[slice, int]] = []
        for name in self.names:
            family = (*self.parents[name], name)
            shape = tuple(self.cards[other] for other in family)
            codes = [
                np.arange(self.cards["t"])[None, :] if other == "t" else self.rows[other][:, None] for other in family
            ]
            places = np.ravel_multi_index(np.broadcast_arrays(*codes), shape)
            self._cells.append(first + np.broadcast_to(places, (n, self.cards["t"])))
            self._spans.append((slice(first, first + int(np.prod(shape))), shape[-1]))
            first += int(np.prod(shape))
        self.size = first

    def network(self, **options: Any) -> sf.BayesianNetwork:
        """The fit."""
        states = {name: list(range(card)) for name, card in self.cards.items()}
        model = sf.BayesianNetwork(
            self.parents, target="t", objective="conditional", states=states, prior=self.prior, **options
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.SufficeWarning)
            return model.fit(self.rows, sample_weight=self.weights)

    def objective(self, logs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """At logarithms of probabilities, and its slope in them as if they were free."""
        scores = np.sum([logs[cells] for cells in self._cells], axis=0)
        scores -= scores.max(axis=1, keepdims=True)
        posterior = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        target, places = self.rows["t"], np.arange(len(self.weights))
        pseudo = self.prior or 0.0
        value = float(self.weights @ np.log(posterior[places, target])) + pseudo * logs.sum()
        slope = np.full(self.size, pseudo)
        for cells in self._cells:
            np.add.at(slope, cells[places, target], self.weights)
            np.add.at(slope, cells, -self.weights[:, None] * posterior)
        return value, slope

    def loss(self, logits: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Minus the objective at logits, and its slope."""
        logs = np.concatenate(
            [
                (z - np.logaddexp.reduce(z, axis=1, keepdims=True)).ravel()
                for z in (logits[span].reshape(-1, card) for span, card in self._spans)
            ]
        )
        value, slope = self.objective(logs)
        for span, card in self._spans:
            own, rows = slope[span].reshape(-1, card), np.exp(logs[span]).reshape(-1, card)
            slope[span] = (own - rows * own.sum(axis=1, keepdims=True)).ravel()
        return -value, -slope

    def is_separated(self) -> bool:
        """Whether some direction of the cells prefers no other state of the target in any row, and its own in one."""
        at = np.zeros((*self._cells[0].shape, self.size))
        for cells in self._cells:
            np.put_along_axis(at, cells[..., None], 1.0, axis=2)
        own = np.take_along_axis(at, self.rows["t"][:, None, None], axis=1)
        margins = np.unique((own - at).reshape(-1, self.size), axis=0)
        found = optimize.linprog(-margins.sum(axis=0), -margins, np.zeros(len(margins)), bounds=(-1.0, 1.0))
        return bool(found.fun < -1e-7)

    def best(self) -> float:
        """The largest value from several starts."""
        starts = [np.zeros(self.size), *self.rng.normal(size=(3, self.size))]
        options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 30}
        return max(
            -float(optimize.minimize(self.loss, start, jac=True, method="L-BFGS-B", options=options).fun)
            for start in starts
        )

    def value_of(self, net: sf.BayesianNetwork) -> float:
        """The objective at the tables of a network."""
        tables = []
        for name in self.names:
            table = net.table(name)
            axes = [list(table.variables).index(other) for other in (*self.parents[name], name)]
            tables.append(np.transpose(np.asarray(table), axes).ravel())
        return self.objective(np.log(np.concatenate(tables)))[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_slope_of_the_judge_is_that_of_its_value(seed: int) -> None:
    instance = Instance(seed)
    point = np.random.default_rng(99).normal(size=instance.size)
    slope = optimize.approx_fprime(point, lambda at: instance.loss(at)[0], 1e-6)
    np.testing.assert_allclose(instance.loss(point)[1], slope, atol=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_left_is_never_less_than_an_optimiser_finds(seed: int) -> None:
    instance = Instance(seed)
    best, weight = instance.best(), instance.weights.sum()
    rounding = 1e-8 * abs(best)
    for steps in (*STEPS, None):
        net = instance.network(**({} if steps is None else {"max_iter": steps}))
        value, certificate = instance.value_of(net), net.report_.certificate
        np.testing.assert_allclose(net.report_.objective, value, rtol=1e-9)
        if certificate.value_gap is not None:
            assert instance.tree or instance.prior is not None
            assert certificate.bound
            assert best - value <= certificate.value_gap * weight + rounding
        if steps is None:
            assert abs(best - value) <= 1e-7 * abs(best) or not instance.tree
            if instance.tree and instance.prior is None and instance.is_separated():
                assert certificate.exists is False
                assert not net.converged_
            else:
                assert net.converged_
                assert certificate.exists is (True if instance.tree or instance.prior else None)
                assert (certificate.value_gap is not None) is (instance.tree or instance.prior is not None)
                # A maximum of its own where there are several.
                matched = net.matched_statistics()
                assert matched is not None
                assert np.abs(matched.gaps).max() < 1e-5


@pytest.mark.parametrize("prior", [0.4, 5.0])
@pytest.mark.parametrize("seed", [0, 1, 4, 5])
def test_the_bound_with_pseudo_counts_holds_for_any_structure(seed: int, prior: float) -> None:
    instance = Instance(seed)
    instance.prior = prior
    best, weight = instance.best(), instance.weights.sum()
    for steps in (2, 8, None):
        net = instance.network(**({} if steps is None else {"max_iter": steps}))
        left, certificate = best - instance.value_of(net), net.report_.certificate
        if certificate.value_gap is not None:
            assert certificate.bound
            assert left <= certificate.value_gap * weight + 1e-10 * abs(best)
        if steps is None:
            assert abs(left) < 1e-7
            # Unknown where a row of some table is met less often than expected, pseudo-counts included.
            assert (certificate.value_gap is None) is ((seed, prior) == (5, 0.4))
            assert (certificate.value_gap or 0.0) * weight < 1e-7


def test_the_relaxed_maximum_lies_between_the_best_tables_and_the_bound() -> None:
    """Rows that add up to at most one, as a convex programme of SciPy: above the tables, and below the dual value."""
    instance = Instance(4)
    instance.prior = 1.0

    def minus(logs: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = instance.objective(logs)
        return -value, -slope

    def room(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = (logs[span].reshape(-1, card) for span, card in instance._spans)
        return np.concatenate([-np.logaddexp.reduce(own, axis=1) for own in rows])

    start = np.concatenate([np.full(span.stop - span.start, -np.log(card)) for span, card in instance._spans])
    options = {"maxiter": 500, "ftol": 1e-13}
    found = optimize.minimize(
        minus, start, jac=True, method="SLSQP", constraints={"type": "ineq", "fun": room}, options=options
    )
    net = instance.network()
    gap = net.report_.certificate.value_gap
    assert gap is not None
    assert instance.value_of(net) - 1e-6 <= -found.fun <= instance.value_of(net) + gap * instance.weights.sum() + 1e-6
