"""What a few sweeps say about the existence of the maximum, against the linear programme."""

import itertools
from typing import Any

import numpy as np
import pytest

import suffice as sf
from certificates import slope_of
from suffice.domain import Domain, Variable
from suffice.engines.junction_tree import plan_tree
from suffice.models.markov.existence_proof import shown_to_exist, spreads
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers.faces import smallest_face

NAMES = ("a", "b", "c", "d")
PAIRS: list[tuple[str, ...]] = list(itertools.combinations(NAMES, 2))
TRIANGLE: list[tuple[str, ...]] = [("a", "b"), ("a", "c"), ("b", "c")]


def verdicts(table: np.ndarray, scopes: list[tuple[str, ...]]) -> tuple[bool, bool | None]:
    """What the sweeps show, and what the linear programme decides from the margins alone."""
    names = NAMES[: table.ndim]
    cards = dict(zip(names, table.shape, strict=True))
    model = LogLinear(Domain([Variable.discrete(name, list(range(card))) for name, card in cards.items()]), scopes)
    margins = []
    for scope in scopes:
        others = tuple(axis for axis, name in enumerate(names) if name not in scope)
        margins.append((table.sum(axis=others) / table.sum()).ravel())
    observed = np.concatenate(margins)
    return shown_to_exist(LogLinearFamily(model), observed), smallest_face(cards, scopes, observed, 1.0).exists


@pytest.mark.parametrize("shape", [(2, 2, 2), (3, 3, 3), (2, 3, 4), (2, 2, 2, 2), (3, 2, 3, 2)])
def test_what_is_shown_to_exist_exists(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(shape))
    scopes = [pair for pair in PAIRS if set(pair) <= set(NAMES[: len(shape)])]
    found = []
    for _ in range(60):
        table = rng.poisson(rng.choice([0.6, 1.0, 2.0, 6.0]), shape).astype(float)
        if table.sum() > 0:
            found.append(verdicts(table, scopes))
    assert not any(shown and exists is not True for shown, exists in found)
    assert any(shown for shown, _ in found)
    assert any(exists is False for _, exists in found)


def test_positive_margins_on_a_face_are_not_shown_to_exist() -> None:
    # Opposite corners of the cube are empty: all margins of pairs are positive, and the maximum is not attained.
    table = np.array([[[0.0, 5.0], [3.0, 4.0]], [[6.0, 2.0], [7.0, 0.0]]])
    assert verdicts(table, TRIANGLE) == (False, False)


@pytest.mark.parametrize("least", [1e-3, 1e-5, 1e-7])
def test_margins_close_to_a_face_are_left_to_the_linear_programme_or_shown(least: float) -> None:
    table = np.array([[[least, 5.0], [3.0, 4.0]], [[6.0, 2.0], [7.0, least]]])
    shown, exists = verdicts(table, TRIANGLE)
    assert exists is True or not shown


def test_full_tables_need_no_linear_programme(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the linear programme was asked")

    monkeypatch.setattr("suffice.models.markov.existence.smallest_face", refuse)
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 3, 2000) for name in NAMES}
    network = sf.MarkovNetwork(PAIRS).fit(columns)
    assert network.report_.certificate.exists is True


def test_a_grid_of_a_hundred_variables_is_decided() -> None:
    at = np.arange(100).reshape(10, 10)
    edges = [
        *zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True),
        *zip(at[:-1].ravel(), at[1:].ravel(), strict=True),
    ]
    scopes = [(f"x{a}", f"x{b}") for a, b in edges]
    rng = np.random.default_rng(1)
    network = sf.MarkovNetwork(scopes).fit({f"x{i}": rng.integers(0, 2, 500) for i in range(100)})
    assert network.report_.certificate.exists is True
    assert slope_of(network.report_.certificate) < 1e-9


# -- the bound of the proof ------------------------------------------------------------------------------------------


def correction(differences: dict[tuple[str, ...], np.ndarray], names: tuple[str, ...], shape: tuple[int, ...]) -> Any:
    """The signed measure with these margins, from its parts that are orthogonal under the uniform law."""
    found, done = np.zeros(shape), set()
    for scope, table in differences.items():
        for size in range(1, len(scope) + 1):
            for part in itertools.combinations(scope, size):
                if part in done:
                    continue
                done.add(part)
                own = table.sum(axis=tuple(axis for axis, name in enumerate(scope) if name not in part))
                for axis in range(own.ndim):
                    own = own - own.mean(axis=axis, keepdims=True)
                wide = [card if name in part else 1 for name, card in zip(names, shape, strict=True)]
                others = [card for name, card in zip(names, shape, strict=True) if name not in part]
                found = found + own.reshape(wide) / np.prod(others)
    return found


@pytest.mark.parametrize(
    ("shape", "scopes"),
    [
        ((2, 3, 2), TRIANGLE),
        ((3, 2, 4, 2), PAIRS),
        ((2, 3, 2, 3), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]),
        ((2, 2, 3, 2), [("a", "b", "c"), ("b", "d"), ("c", "d"), ("a", "d")]),
    ],
)
def test_what_lacks_is_never_larger_than_the_bound(shape: tuple[int, ...], scopes: list[tuple[str, ...]]) -> None:
    names = NAMES[: len(shape)]
    plan = plan_tree(dict(zip(names, shape, strict=True)), scopes)
    rng = np.random.default_rng(0)
    for _ in range(20):
        change = rng.normal(size=shape)
        change -= change.mean()
        lacking = {}
        for scope in scopes:
            others = tuple(axis for axis, name in enumerate(names) if name not in scope)
            lacking[scope] = change.sum(axis=others)
        gap = max(float(np.abs(table).max()) for table in lacking.values())
        measure = correction(lacking, names, shape)
        for scope, table in lacking.items():
            others = tuple(axis for axis, name in enumerate(names) if name not in scope)
            np.testing.assert_allclose(measure.sum(axis=others), table, atol=1e-12)
        for clique, share in zip(plan.cliques, spreads(plan), strict=True):
            others = tuple(axis for axis, name in enumerate(names) if name not in clique)
            assert np.abs(measure.sum(axis=others)).max() <= gap * share


def test_a_model_too_large_for_sweeps_is_decided_by_its_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.models.markov.existence_proof.WORK", 0)
    monkeypatch.setattr("suffice.models.markov.exact.MOST_CELLS", 1)
    rng = np.random.default_rng(2)
    columns = {name: rng.integers(0, 3, 5000) for name in NAMES}
    network = sf.MarkovNetwork(PAIRS).fit(columns)
    assert network.report_.certificate.exists is True
    edge = np.array([[[0.0, 5.0], [3.0, 4.0]], [[6.0, 2.0], [7.0, 0.0]]])  # On a face, with positive margins.
    margins = {scope: edge.sum(axis=axis) for axis, scope in ((2, ("a", "b")), (1, ("a", "c")), (0, ("b", "c")))}
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        network = sf.MarkovNetwork(TRIANGLE, max_iter=100).fit(margins)
    assert network.report_.certificate.exists is None
    assert sf.MarkovNetwork(PAIRS, check_existence=False).fit(columns).report_.certificate.exists is None
