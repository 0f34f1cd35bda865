"""What is kept from one fit to the next is what the structure says: never states, names or answers of other data."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.domain import Domain, Variable, declare_all
from suffice.errors import DataError, MergeError, MissingValueError, OptionError, UnknownStateError
from suffice.models.bayesian.nodes.table_layout import layout_of
from suffice.statistics import Counts, FamilyCounts

STRUCTURE = {"a": [], "b": ["a"], "c": ["a", "b"], "d": []}
CARDS = {"a": 2, "b": 3, "c": 2, "d": 4}


def drawn(seed: int, rows: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, card, rows).astype(np.uint8) for name, card in CARDS.items()}


def fitted(rows: Any, **options: Any) -> sf.BayesianNetwork:
    return sf.BayesianNetwork(STRUCTURE, states={n: list(range(c)) for n, c in CARDS.items()}, **options).fit(rows)


def by_hand(rows: Any, node: str) -> Any:
    family = [*STRUCTURE[node], node]
    counts = np.zeros([CARDS[name] for name in family])
    np.add.at(counts, tuple(rows[name] for name in family), 1)
    return counts / counts.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fits_of_one_structure_are_those_of_their_own_rows(seed: int) -> None:
    rows = drawn(seed)
    net = fitted(rows)
    for node in STRUCTURE:
        np.testing.assert_array_equal(net.table(node).values, by_hand(rows, node))


def test_equal_states_of_other_types_are_not_mistaken() -> None:
    whole = declare_all({"a": [0, 1], "b": [1, 0]})
    truth = declare_all({"a": [False, True], "b": [True, False]})
    assert [list(v.states) for v in truth.values()] == [[False, True], [True, False]]
    assert all(type(state) is bool for v in truth.values() for state in v.states)
    assert whole["a"] != truth["a"]
    assert declare_all({"a": [0, 1], "b": [1, 0]})["a"] is whole["a"]
    assert Variable.discrete("a", [0, 1], "category") is not whole["a"]
    assert Variable.discrete("a", [0, 1], "category").origin == "category"
    assert (whole["a"].counts_up, whole["b"].counts_up, truth["a"].counts_up) == (True, False, False)
    assert whole["a"].lists(range(2))
    assert not whole["a"].lists([False, True])
    assert not truth["a"].lists([0, 1])
    assert Variable.discrete("t", ["x", "yz"]).lists(["x", "".join(["y", "z"])])


def test_only_variables_themselves_are_shared() -> None:
    class Column(Variable):
        """A variable of a caller's own."""

    Variable.discrete("a", [0, 1])
    found = Column.discrete("a", [0, 1])
    assert type(found) is Column
    assert found == Variable.discrete("a", [0, 1])


def test_a_domain_is_kept_only_for_shared_variables() -> None:
    shared = [Variable.discrete("a", [0, 1]), Variable.discrete("b", ["x", "y"])]
    assert Domain.of(shared) is Domain.of([Variable.discrete("a", [0, 1]), Variable.discrete("b", ["x", "y"])])
    assert Domain.of(shared[::-1]).names == ("b", "a")
    real = Variable("r", "real")
    assert Domain.of([real]) is not Domain.of([real])
    with pytest.raises(OptionError, match="names must differ"):
        Domain.of([shared[0], shared[0]])
    for card in range(1, 200):  # More domains than are kept.
        assert Domain.of([Variable.discrete("n", range(card % 64 + 1), "seen")]).cards == (card % 64 + 1,)
    assert Domain.of(shared).select(["a", "b"]).names == ("a", "b")


def test_names_that_are_equal_keep_their_own_look() -> None:
    rows = {0: np.array([0, 1, 1]), 1: np.array([0, 0, 1])}
    assert sf.BayesianNetwork({0: [], 1: [0]}).fit(rows).table(1).variables == (0, 1)
    again = sf.BayesianNetwork({False: [], True: [False]}).fit({False: rows[0], True: rows[1]})
    assert [type(name) for name in again.table(True).variables] == [bool, bool]
    assert [type(name) for question in again.statistics_.answers for name in question.variables] == [bool] * 3


def test_errors_come_each_time() -> None:
    fitted(drawn(1))
    for _ in range(2):
        with pytest.raises(OptionError, match="cycle"):
            sf.BayesianNetwork({"a": ["b"], "b": ["a"]})
        with pytest.raises(OptionError, match="hashable"):
            sf.BayesianNetwork({"a": [["b"]]})
        with pytest.raises(OptionError, match="twice"):
            sf.BayesianNetwork({"a": []}, states={"a": [0, 0]})


@pytest.mark.parametrize(
    ("value", "error", "found"),
    [
        (np.array([0, 1, 2] * 60 + [0] * 20, np.uint8), UnknownStateError, "holds 2"),
        (np.array([0, -1] * 100), UnknownStateError, "holds -1"),
        (np.array([0.0, 0.5] * 100), UnknownStateError, "holds 0.5"),
        (np.array([0.0, np.nan] * 100), MissingValueError, "100 missing values"),
        (np.zeros(199, np.uint8), DataError, "199"),
    ],
)
def test_bad_codes_are_refused_after_good_ones(value: Any, error: type[Exception], found: str) -> None:
    fitted(drawn(1))
    with pytest.raises(error, match=found):
        fitted(drawn(1) | {"a": value}, missing="raise")


def test_answers_together_are_answers_each() -> None:
    rows = drawn(4)
    summary = fitted(rows).statistics_
    assert isinstance(summary.answers, FamilyCounts)
    assert list(summary.answers) == [Counts((*above, node)) for node, above in STRUCTURE.items()]
    assert len(summary.answers) == len(STRUCTURE)
    assert summary[Counts(("a", "b"))].dense().sum() == 200
    assert Counts(("b", "a")) not in summary.answers
    with pytest.raises(MergeError, match="does not answer"):
        summary[Counts(("b", "a"))]
    assert pickle.loads(pickle.dumps(summary)) == summary
    other = fitted(drawn(5)).statistics_
    both = {name: np.concatenate([rows[name], drawn(5)[name]]) for name in CARDS}
    assert summary + other == fitted(both).statistics_
    assert (summary + other) - other == summary


def test_a_question_asked_twice_has_one_answer() -> None:
    question = Counts(("a",))
    found = sf.summarize([question, question], {"a": [0, 1, 1]})
    assert list(found.answers) == [question]
    assert found[question].dense().tolist() == [1.0, 2.0]


def test_rows_of_tables_in_one_array_add_up_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    shapes = ((2, 3), (11,), (3,), (4, 2, 11), (1,), (5, 2))
    tables = [rng.exponential(size=shape) for shape in shapes]
    layout = layout_of(shapes)
    flat, sums = layout.flat(tables), layout.sums(layout.flat(tables))
    np.testing.assert_array_equal(np.concatenate(tables, axis=None)[layout.taken], flat)
    for at, first_row, first_cell in zip(layout.order, layout.first_rows, layout.first_cells, strict=True):
        rows = tables[at].reshape(-1, shapes[at][-1])
        np.testing.assert_array_equal(sums[first_row : first_row + len(rows)], rows.sum(axis=1))
        np.testing.assert_array_equal(flat[first_cell : first_cell + rows.size], rows.ravel())
    np.testing.assert_array_equal(layout.sums_at(flat), sums[layout.row_of])


def test_a_fit_that_fails_leaves_the_network_as_it_was() -> None:
    rng = np.random.default_rng(0)
    net = sf.BayesianNetwork([("a", "b"), ("b", "c")], states={"c": [0, 1]})
    net.fit({name: rng.integers(0, 2, 200) for name in "abc"})
    held = net.to_dict()
    before = dict(vars(net))
    with pytest.raises(sf.UnknownStateError, match="'c'"):
        net.fit({"a": [0, 1, None], "b": [0, 1, 1], "c": [1, 1, 7]})
    assert vars(net).keys() == before.keys()
    assert all(vars(net)[name] is value for name, value in before.items())
    assert net.to_dict()["fitted"]["nodes"][0]["rows"].tolist() == held["fitted"]["nodes"][0]["rows"].tolist()
