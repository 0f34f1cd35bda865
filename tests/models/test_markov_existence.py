"""What a few sweeps say about the existence of the maximum, against the linear programme."""

import itertools

import numpy as np
import pytest

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.engines.junction_tree import plan_tree
from suffice.models.markov.existence import shown_to_exist
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
    return shown_to_exist(plan_tree(cards, scopes), model, observed), smallest_face(cards, scopes, observed, 1.0).exists


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

    monkeypatch.setattr("suffice.models.markov.certificate.smallest_face", refuse)
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
    assert network.report_.certificate.moment_gap < 1e-9
