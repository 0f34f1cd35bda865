"""Numbers whose products leave the range of a double: the junction tree against exact fractions."""

import math
from collections.abc import Iterator
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from suffice.engines.junction_tree import JunctionTree, plan_tree
from suffice.kernels import choice

Floats = NDArray[np.float64]


@pytest.fixture(params=["numpy", "compiled"], autouse=True)
def path(request: pytest.FixtureRequest) -> Iterator[None]:
    with choice.force(request.param):
        yield


def log_of(value: Fraction) -> float:
    """Logarithm of a fraction of any size."""
    return math.log(value.numerator) - math.log(value.denominator)


def chain(factors: list[Floats]) -> JunctionTree:
    """x0 - x1 - x2 - ..., one table for each neighbours."""
    count = len(factors) + 1
    cards = {i: len(factors[i]) if i < len(factors) else factors[-1].shape[1] for i in range(count)}
    return plan_tree(cards, [(i, i + 1) for i in range(len(factors))]).load(factors)


def whole_numbers(table: Floats) -> tuple[list[list[int]], int]:
    """Numbers as whole multiples of a power of two, without rounding, and the power."""
    exponent = int(np.frexp(table[table > 0.0])[1].min()) - 53
    return [[int(Fraction(float(number)) * Fraction(2) ** -exponent) for number in row] for row in table], exponent


def chain_exactly(factors: list[Floats]) -> tuple[float, list[list[float]]]:
    """log Z and the law of every variable by forward and backward sums of whole numbers."""
    tables, exponents = zip(*map(whole_numbers, factors), strict=True)
    forward = [[1] * len(tables[0])]
    for table in tables:
        forward.append([sum(map(mul, forward[-1], column)) for column in zip(*table, strict=True)])
    backward = [[1] * len(tables[-1][0])]
    for table in reversed(tables):
        backward.append([sum(map(mul, row, backward[-1])) for row in table])
    total = sum(forward[-1])
    laws = [
        [math.ldexp((f * b << 200) // total, -200) for f, b in zip(ahead, behind, strict=True)]
        for ahead, behind in zip(forward, reversed(backward), strict=True)
    ]
    return math.log(total) + sum(exponents) * math.log(2.0), laws


def check_chain(factors: list[Floats]) -> None:
    log_z, laws = chain_exactly(factors)
    posterior = chain(factors).condition()
    assert posterior.log_partition == pytest.approx(log_z, rel=1e-12, abs=1e-9)
    for found, expected in zip(posterior.marginals().values(), laws, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)
    assert chain(factors).log_partition() == pytest.approx(log_z, rel=1e-12, abs=1e-9)


def random_tables(count: int, low: float, high: float) -> list[Floats]:
    """Square tables whose numbers have logarithms to base 10 between low and high."""
    generator = np.random.default_rng(count)
    return [10.0 ** generator.uniform(low, high, size=(2, 2)) for _ in range(count)]


@pytest.mark.parametrize(
    ("low", "high"), [(-6, -5), (-301, -299), (299, 301), (-20, 20), (-150, 150), (-307, 307)], ids=str
)
def test_a_thousand_variables(low: float, high: float) -> None:
    check_chain(random_tables(999 if high - low < 30 else 150, low, high))


def test_evidence_for_one_state_and_then_for_the_other() -> None:
    """A state that falls behind by 4^-1000 and catches up again: dropping it at 1e-308 would give 1 instead of 1/2."""
    towards, away = np.diag([1.0, 0.25]), np.diag([0.25, 1.0])
    check_chain([towards] * 1000 + [away] * 1000)
    laws = chain([towards] * 1000 + [away] * 1000).condition().marginals()
    np.testing.assert_allclose(laws[0], [0.5, 0.5], rtol=1e-9)


def test_a_state_that_is_lost_on_the_way_is_found_again() -> None:
    """The message underflows in one factor and is needed by the next."""
    check_chain(
        [np.diag([1.0, 1e-200]), np.diag([1.0, 1e-200]), np.diag([0.0, 1.0]), np.array([[1.0, 2.0], [3.0, 4.0]])]
    )


def test_true_zeros_stay_zeros() -> None:
    factors = [np.array([[0.5, 0.5], [0.0, 1e-3]])] * 600
    posterior = chain([*factors, np.diag([1.0, 0.0])]).condition()
    np.testing.assert_allclose(posterior.marginals()[0], [1.0, 0.0], atol=1e-300)
    assert posterior.log_partition == pytest.approx(600 * math.log(0.5), rel=1e-13)
    assert chain([*factors, np.diag([1.0, 0.0])]).log_partition({0: 1}) == -math.inf


def test_a_star_of_a_thousand_observations() -> None:
    """A class and a thousand features, each of which tells a little: the product of messages is near 1e-600."""
    generator = np.random.default_rng(0)
    tables = generator.dirichlet([1.0, 1.0, 1.0, 1.0], size=(1000, 3))
    cards: dict[Any, int] = {"class": 3, **dict.fromkeys(range(1000), 4)}
    model = plan_tree(cards, [("class",), *(("class", i) for i in range(1000))]).load([[0.2, 0.3, 0.5], *tables])
    codes = generator.integers(0, 4, 1000)
    logs = np.log([0.2, 0.3, 0.5]) + np.log(tables[np.arange(1000), :, codes]).sum(axis=0)
    posterior = model.condition(dict(enumerate(codes.tolist())))
    top = logs.max()
    assert posterior.log_partition == pytest.approx(top + math.log(np.exp(logs - top).sum()), rel=1e-12)
    np.testing.assert_allclose(posterior.marginals()["class"], np.exp(logs - top) / np.exp(logs - top).sum(), rtol=1e-9)
    rows = np.concatenate([[-1], codes])[None]
    answers = model.solve_rows(rows, scopes=[("class",)])
    assert answers.log_partition[0] == pytest.approx(posterior.log_partition, rel=1e-13)
    np.testing.assert_allclose(answers.marginals["class",][0], posterior.marginals()["class"], rtol=1e-9)


def test_log_potentials_that_no_double_holds() -> None:
    """Two states, each of weight e^-100000 in the product."""
    plan = plan_tree({"a": 2, "b": 2}, [("a",), ("a", "b"), ("b",)])
    model = plan.load([[0.0, -1e5], [[-5.0, -math.inf], [-math.inf, -5.0]], [-1e5, 0.0]], log=True)
    posterior = model.condition()
    assert posterior.log_partition == pytest.approx(-1e5 - 5.0 + math.log(2.0), rel=1e-15)
    np.testing.assert_allclose(posterior.marginals()["b"], [0.5, 0.5], rtol=1e-9)
    value, slope = plan.moments()([0.0, -1e5, -5.0, -math.inf, -math.inf, -5.0, -1e5, 0.0])
    assert value == pytest.approx(posterior.log_partition, rel=1e-15)
    np.testing.assert_allclose(slope, [0.5, 0.5, 0.5, 0.0, 0.0, 0.5, 0.5, 0.5], rtol=1e-9)
    assert model.most_probable().states == {"a": 0, "b": 0}
    assert model.most_probable({}, {"b": [1.0, 1.1]}).states == {"a": 1, "b": 1}


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1.0, 1e300])
def test_the_size_of_a_factor_only_moves_log_z(scale: float) -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    model = plan_tree({"a": 2, "b": 2}, [("a", "b"), (), ("b",)]).load([scale * table, scale, [scale, scale]])
    posterior = model.condition({}, {"a": [scale, scale]})
    exact = 4 * log_of(Fraction(scale)) + math.log(10.0)
    assert posterior.log_partition == pytest.approx(exact, rel=1e-3 if scale < 1e-310 else 1e-14)
    if scale > 1e-310:  # Below, the table itself is rounded to a few digits.
        np.testing.assert_allclose(posterior.marginal(("a", "b")), table / 10.0, rtol=1e-12)


def test_rows_with_factors_of_any_size() -> None:
    """Log-factors of rows between -1e6 and 1e6, next to ordinary rows."""
    generator = np.random.default_rng(4)
    model = plan_tree({"a": 2, "b": 3}, [("a", "b")]).load([generator.random((2, 3))])
    logs = generator.normal(size=(40, 2, 3)) * np.repeat([1.0, 1e6], 20)[:, None, None]
    rows = np.full((40, 1), -1)
    answers = model.solve_rows(rows, ["a"], scopes=[("b", "a")], row_factors={("a", "b"): logs})
    counts = model.expect(rows, ["a"], weights=np.arange(40.0), row_factors={("a", "b"): logs})
    joint = np.log(model.condition().marginal(("a", "b"))) + model.log_partition() + logs
    top = joint.max(axis=(1, 2))
    laws = np.exp(joint - top[:, None, None])
    total = laws.sum(axis=(1, 2))
    np.testing.assert_allclose(answers.log_partition, top + np.log(total), rtol=1e-14)
    laws /= total[:, None, None]
    np.testing.assert_allclose(answers.marginals["b", "a"], laws.transpose(0, 2, 1), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(counts.tables[0], np.tensordot(np.arange(40.0), laws, 1), rtol=1e-12)
    np.testing.assert_allclose(counts.log_partition, answers.log_partition, rtol=1e-15)
