"""Existence of the maximum, against one linear programme for each joint state and against plain scaling."""

from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from joint_tables import DECOMPOSABLE, SCOPES, Scope, design, margin, positive_states, scale, sparse_tables, spread
from suffice.errors import EstimateError, OptionError
from suffice.solvers import faces
from suffice.solvers.faces import Face, smallest_face
from suffice.solvers.local_faces import local_face

PAIRS: list[Scope] = [(0, 1), (1, 2), (0, 2)]


def face_of(scopes: list[Scope], nodes: list[Any], table: Any, *, rows: bool = False, **options: Any) -> Face:
    cards = dict(zip(nodes, table.shape, strict=True))
    observed = np.concatenate([margin(table, scope, nodes).ravel() for scope in scopes])
    given_margin = (lambda scope: margin(table, scope, nodes)) if rows else None
    return smallest_face(cards, scopes, observed, float(table.sum()), margin=given_margin, **options)


def mask_of(face: Face, nodes: list[Any], shape: tuple[int, ...]) -> Any:
    """The states that the masks leave."""
    log = np.zeros(shape)
    for scope, values in face.masks():
        log = log + spread(values, scope, nodes)
    return log == 0.0


def log_likelihood(table: Any, log: Any) -> float:
    top = log.max()
    return float((table * log)[table > 0].sum() - table.sum() * (top + np.log(np.exp(log - top).sum())))


def test_two_zeros_with_positive_margins() -> None:
    """Haberman's table: no margin is zero, and there is no maximum."""
    table = np.full((2, 2, 2), 3.0)
    table[0, 0, 0] = table[1, 1, 1] = 0.0
    face = face_of(PAIRS, [0, 1, 2], table)
    assert face.exists is False
    assert face.n_states() == 6
    assert all(alive.all() for alive in face.scope_support)
    ((scope, values),) = face.masks()
    assert scope == (0, 1, 2)
    assert np.array_equal(values == 0.0, table > 0)
    lost = face.lost_states(dict.fromkeys(range(3), ("no", "yes")))
    assert lost == ("P(0=no, 1=no, 2=no) -> 0", "P(0=yes, 1=yes, 2=yes) -> 0")
    assert np.count_nonzero(face.direction) > 2
    table[1, 1, 1] = 1.0
    face = face_of(PAIRS, [0, 1, 2], table)
    assert face.exists is True
    assert face.lost_states({}) == ()
    assert not face.direction.any()


def test_every_pattern_of_zeros_of_a_table_of_two_by_two_by_two() -> None:
    """The polytope has sixteen facets: twelve zero margins, and four pairs of opposite corners."""
    for pattern in product((0.0, 1.0), repeat=8):
        table = np.array(pattern).reshape(2, 2, 2)
        if table.sum() == 0:
            continue
        zero_margin = any((margin(table, scope, [0, 1, 2]) == 0).any() for scope in PAIRS)
        opposite = any(table[x] == 0 and table[tuple(1 - np.array(x))] == 0 for x in product((0, 1), repeat=3))
        assert face_of(PAIRS, [0, 1, 2], table, rows=True).exists is not (zero_margin or opposite)


@settings(max_examples=60)
@given(sparse_tables())
def test_the_face_is_what_some_law_makes_positive(case: tuple[list[Scope], list[Any], Any]) -> None:
    scopes, nodes, table = case
    cards = dict(zip(nodes, table.shape, strict=True))
    rows = design(scopes, cards, nodes)
    expected = positive_states(rows, rows.T @ table.ravel() / table.sum()).reshape(table.shape)
    for with_rows in (False, True):
        face = face_of(scopes, nodes, table, rows=with_rows)
        assert face.exists is bool(expected.all())
        assert np.array_equal(mask_of(face, nodes, table.shape), expected)
        assert face.n_states() == expected.sum()
        move = (rows @ face.direction).reshape(table.shape)
        # Constant on the face and lower off it: the likelihood rises along the direction, towards a law on the face.
        level = move[expected].mean()
        np.testing.assert_allclose(move[expected], level, atol=1e-7)
        assert (move[~expected] <= level - 1 + 1e-6).all()
        assert face.exists is not bool(face.direction.any())


@settings(max_examples=25)
@given(sparse_tables(("triangle", "cycle", "wheel", "mixed")))
def test_scaling_on_the_face_matches_the_margins(case: tuple[list[Scope], list[Any], Any]) -> None:
    scopes, nodes, table = case
    mask = mask_of(face_of(scopes, nodes, table), nodes, table.shape)
    law = scale(table, scopes, mask.astype(float), nodes)
    for scope in scopes:
        np.testing.assert_allclose(
            margin(law, scope, nodes), margin(table, scope, nodes), rtol=1e-6, atol=1e-8 * table.sum()
        )
    assert (law[mask] > 0).all()


def test_the_likelihood_rises_along_the_direction_to_the_extended_maximum() -> None:
    rng = np.random.default_rng(5)
    table = rng.integers(1, 9, size=(2, 2, 2)).astype(float)
    table[0, 1, 0] = table[1, 0, 1] = 0.0
    face = face_of(PAIRS, [0, 1, 2], table)
    rows = design(PAIRS, dict.fromkeys(range(3), 2), [0, 1, 2])
    law = scale(table, PAIRS, (table > 0).astype(float), [0, 1, 2])
    # Weights that give the extended law on the face.
    weights = np.linalg.lstsq(rows[table.ravel() > 0], np.log(law[table > 0]), rcond=None)[0]
    move = rows @ face.direction
    values = [log_likelihood(table, (rows @ weights + step * move).reshape(2, 2, 2)) for step in (0, 1, 4, 16, 64)]
    assert all(one < other for one, other in pairwise(values[:-1]))
    limit = float((table[table > 0] * np.log(law[table > 0] / table.sum())).sum())
    assert values[-1] == pytest.approx(limit, rel=1e-12)
    # The zeros are the only states left out, and a model with 6 parameters on 6 states is saturated there.
    np.testing.assert_allclose(law, table, rtol=1e-9)


@pytest.mark.parametrize("name", DECOMPOSABLE)
def test_zero_margins_decide_decomposable_models(name: str) -> None:
    scopes = SCOPES[name]
    nodes = sorted({node for scope in scopes for node in scope})
    table = np.ones([2] * len(nodes))
    face = face_of(scopes, nodes, table)
    assert face.exists is True
    assert "decomposable" in face.reason
    assert face.masks() == []
    table[tuple(0 for _ in nodes)] = 0.0
    face = face_of(scopes, nodes, table)
    assert face.exists is not (name in ("whole", "single", "edge"))


def test_features_that_take_both_signs() -> None:
    """Two spins that always agree: the mean of their product is at its largest, and the coupling runs to infinity."""
    values = np.array([[1.0, -1.0], [-1.0, 1.0]])
    matrix = np.zeros((8, 3))
    matrix[0:4, 2] = values.ravel()
    matrix[4:6, 0] = matrix[6:8, 1] = (-1.0, 1.0)
    scopes: list[Scope] = [(0, 1), (0,), (1,)]
    face = smallest_face({0: 2, 1: 2}, scopes, np.array([2.0, 2.0, 10.0]), 10.0, design=matrix)
    assert face.exists is False
    assert np.array_equal(mask_of(face, [0, 1], (2, 2)), values > 0)
    assert face.direction[2] > 0
    face = smallest_face({0: 2, 1: 2}, scopes, np.array([2.0, 2.0, 6.0]), 10.0, design=matrix)
    assert face.exists is True


def test_one_weight_on_several_scopes() -> None:
    """A tied count of agreements that is 0 forbids every agreement."""
    matrix = np.concatenate([np.eye(2).ravel(), np.eye(2).ravel()])[:, None]
    face = smallest_face({0: 2, 1: 2, 2: 2}, [(0, 1), (1, 2)], np.array([0.0]), 4.0, design=matrix)
    expected = np.zeros((2, 2, 2), dtype=bool)
    expected[0, 1, 0] = expected[1, 0, 1] = True
    assert np.array_equal(mask_of(face, [0, 1, 2], (2, 2, 2)), expected)
    assert face.direction[0] < 0
    negative = smallest_face({0: 2, 1: 2, 2: 2}, [(0, 1), (1, 2)], np.array([0.0]), 4.0, design=-matrix)
    assert negative.direction[0] > 0


def test_features_inside_tables_leave_a_model_decomposable() -> None:
    matrix = np.zeros((8, 5))
    matrix[:4, :4] = np.eye(4)
    matrix[4:8, 4] = (0.0, 1.0, 2.0, 5.0)
    scopes: list[Scope] = [(0, 1), (1, 0)]
    face = smallest_face({0: 2, 1: 2}, scopes, np.array([1.0, 1.0, 1.0, 1.0, 8.0]), 4.0, design=matrix)
    assert (face.exists, "decomposable" in face.reason) == (True, True)


def test_a_grid_is_decided_on_the_tree() -> None:
    """Twenty-five spins, 2^25 states: the two laws that alternate need every edge to disagree."""
    side = 5
    nodes = [(i, j) for i in range(side) for j in range(side)]
    edges = [(a, b) for a, b in combinations(nodes, 2) if abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1]
    cards = dict.fromkeys(nodes, 2)
    opposite = np.concatenate([np.array([0.0, 1.0, 1.0, 0.0]) for _ in edges])
    face = smallest_face(cards, edges, opposite, 2.0)
    assert (face.exists, face.n_states()) == (False, 2)
    even = smallest_face(cards, edges, np.full(4 * len(edges), 0.25), 1.0)
    assert (even.exists, even.n_states()) == (True, 2**25)


def test_a_table_too_large_for_the_programme_is_left_undecided() -> None:
    face = face_of(PAIRS, [0, 1, 2], np.ones((2, 2, 2)), most_cells=7)
    assert (face.exists, face.n_states(), face.masks()) == (None, None, [])
    assert face.reason == "the junction tree has 8 cells, and the linear programme takes at most 7"
    table = np.ones((2, 2, 2))
    table[0, 0] = 0.0
    face = face_of(PAIRS, [0, 1, 2], table, most_cells=7)
    assert (face.exists, face.n_states()) == (False, None)
    assert np.array_equal(mask_of(face, [0, 1, 2], (2, 2, 2)), table > 0)
    assert face.direction[0] < 0


def test_what_needs_no_programme_has_no_limit_of_size() -> None:
    """Decomposable models, and clusters whose every cell was observed."""
    assert face_of(SCOPES["chain"], list(range(4)), np.ones((2, 2, 2, 2)), most_cells=0).exists is True
    table = np.ones((2, 2, 2))
    assert face_of(PAIRS, [0, 1, 2], table, rows=True, most_cells=0).exists is True
    table[0, 0, 0] = 0.0
    assert face_of(PAIRS, [0, 1, 2], table, rows=True, most_cells=0).exists is None
    unknown = smallest_face(dict.fromkeys(range(3), 2), PAIRS, np.full(12, 2.0), 8.0, margin=lambda scope: None)
    assert unknown.exists is True
    zeros = smallest_face(dict.fromkeys(range(3), 2), PAIRS, np.full(12, 2.0), 8.0, margin=lambda scope: np.zeros(8))
    assert zeros.exists is True


@pytest.mark.parametrize("many", [1e3, 1e6, 1e9])
def test_one_row_among_very_many(many: float) -> None:
    """A single row in a corner keeps the maximum; without it there is none."""
    table = np.full((2, 2, 2), many)
    table[0, 0, 0] = 0.0
    for corner, exists in ((1.0, True), (0.0, False)):
        table[1, 1, 1] = corner
        for rows in (True, False):
            assert face_of(PAIRS, [0, 1, 2], table, rows=rows).exists is exists


def test_margins_of_no_law() -> None:
    """Of three binary variables no two agree often enough with the third: pairwise margins without a joint law."""
    often, rarely = [0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1]
    cards = dict.fromkeys(range(3), 2)
    names = [f"{scope}{cell}" for scope in PAIRS for cell in product((0, 1), repeat=2)]
    with pytest.raises(EstimateError, match=r"No joint distribution has the observed margins.*\(0, 2\)\(") as error:
        smallest_face(cards, PAIRS, np.array(often + often + rarely), 1.0, names=names)
    # P(0 != 1) + P(1 != 2) >= P(0 != 2) is broken: 0.2 + 0.2 < 0.8. On the border the margins have a law.
    assert "on average" in str(error.value)
    border = [0.2, 0.3, 0.3, 0.2]
    middle = [0.35, 0.15, 0.15, 0.35]
    face = smallest_face(cards, PAIRS, np.array(middle + middle + border), 1.0)
    assert (face.exists, face.n_states()) == (False, 6)
    with pytest.raises(EstimateError, match="every joint state falls in a cell with a margin of zero"):
        smallest_face(cards, PAIRS, np.array([0.5, 0, 0, 0.5] * 2 + [0, 0.5, 0.5, 0]), 1.0)


def test_variables_in_no_scope_and_constants() -> None:
    face = smallest_face({0: 2, 1: 3, 2: 1}, [(0, 2)], np.array([1.0, 0.0]), 1.0)
    assert (face.exists, face.n_states()) == (False, 3)
    empty = smallest_face({}, [], np.zeros(0), 1.0)
    assert (empty.exists, empty.n_states()) == (True, 1)


def test_a_design_of_the_wrong_height_is_refused() -> None:
    with pytest.raises(OptionError, match="3 rows; the scopes have 4 cells"):
        smallest_face({0: 2, 1: 2}, [(0, 1)], np.ones(1), 4.0, design=np.ones((3, 1)))


# -- what the scopes say by themselves -------------------------------------------------------------------------------


def test_scopes_by_themselves_find_cells_that_vanish_together() -> None:
    """Spins a, b with a, b and a b: (-1, 1) never seen means -1{a = -1, b = 1} = (-1 + a - b + a b) / 4 + const."""
    cards: dict[Any, int] = {"a": 2, "b": 2}
    scopes: list[tuple[Any, ...]] = [("a",), ("b",), ("a", "b")]
    rows = [[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], *([0, 0, sign] for sign in (1, -1, -1, 1))]
    shares = np.array([0.3, 0.7, 0.6, 0.4, 0.3, 0.0, 0.3, 0.4])
    found = local_face(cards, scopes, sparse.csr_array(np.array(rows, float)), shares)
    assert found is not None
    left, direction = found
    assert left.tolist() == [True] * 5 + [False] + [True] * 2
    np.testing.assert_allclose(direction / np.abs(direction).max(), [1.0, -1.0, 1.0], atol=1e-9)


def test_a_tied_weight_runs_only_where_all_scopes_let_it() -> None:
    cards: dict[Any, int] = dict.fromkeys("abc", 2)
    scopes: list[tuple[Any, ...]] = [("a", "b"), ("b", "c")]
    tied = sparse.csr_array(np.array([[1.0], [-1], [-1], [1]] * 2))
    always, mixed = np.array([0.5, 0, 0, 0.5]), np.array([0.4, 0.1, 0, 0.5])
    for second, expected in ((always, [True, False, False, True] * 2), (mixed, [True] * 8)):
        found = local_face(cards, scopes, tied, np.concatenate([always, second]))
        assert found is not None
        assert found[0].tolist() == expected
        assert bool(found[1].any()) is (second is always)


def test_a_programme_that_gives_up_leaves_the_question_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the solver of the programme says never leaves: the answer is then not decided."""
    monkeypatch.setattr(faces, "SECONDS", 0.0)
    counts = np.array([0.0, 3, 2, 4, 5, 1, 6, 0]).reshape(2, 2, 2)
    margins = np.concatenate([counts.sum(axis=2).ravel(), counts.sum(axis=1).ravel(), counts.sum(axis=0).ravel()])
    face = smallest_face(dict.fromkeys("ABC", 2), [("A", "B"), ("A", "C"), ("B", "C")], margins, counts.sum())
    assert face.exists is None
    assert "gave up" in face.reason
