"""Variables, states and domains."""

import copy
import datetime
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.domain import Domain, Variable, declare, is_missing, sort_states, state_key
from suffice.errors import MergeError, MissingColumnError, OptionError, UnknownStateError

STATES = st.one_of(
    st.text(max_size=3), st.integers(-5, 5), st.booleans(), st.tuples(st.integers(0, 2), st.text(max_size=1))
)


def test_text_number_and_truth_are_three_states() -> None:
    variable = Variable.discrete("x", ["1", 1, True])
    assert [variable.index(value) for value in ("1", 1, True)] == [0, 1, 2]
    assert variable.states == ("1", 1, True)
    assert [type(state) for state in variable.states] == [str, int, bool]


def test_numbers_of_any_width_are_one_state() -> None:
    variable = Variable.discrete("x", [0, 1, 2])
    assert variable.index(np.int8(1)) == variable.index(1.0) == variable.index(np.float32(1)) == 1
    assert variable.find(1.5) is None


def test_numpy_scalars_become_python() -> None:
    states = Variable.discrete("x", np.array(["a", "b"])).states + Variable.discrete("y", np.array([1, 2])).states
    assert [type(state) for state in states] == [str, str, int, int]


def test_nested_tuples_keep_their_types_apart() -> None:
    variable = Variable.discrete("x", [(1, "a"), (True, "a")])
    assert variable.index((True, "a")) == 1


@pytest.mark.parametrize("gap", [None, float("nan"), np.nan, np.datetime64("NaT"), np.float32("nan")])
def test_gaps(gap: object) -> None:
    assert is_missing(gap)


def test_gap_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert is_missing(pandas.NA)
    assert is_missing(pandas.NaT)
    assert not is_missing(pandas.Timestamp("2024-01-01"))


def test_an_unknown_state_names_column_value_type_states_and_remedy() -> None:
    variable = Variable.discrete("smoker", ["no", "yes"])
    with pytest.raises(UnknownStateError, match=r"'smoker' has no state True \(bool\).*states are: 'no', 'yes'"):
        variable.index(True)


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ([1, 1.0], "twice"),
        ("ab", "list of states"),
        (["a", None], "missing value is not a state"),
    ],
)
def test_states_that_cannot_be(states: list[object], found: str) -> None:
    with pytest.raises(OptionError, match=found):
        Variable.discrete("x", states)


def test_kinds() -> None:
    with pytest.raises(OptionError, match="expected 'discrete', 'real' or 'count'"):
        Variable("x", "integer")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="cannot have states"):
        Variable("x", "real", (1, 2))
    assert declare("x", "count").kind == "count"
    assert declare("x", ["a"]).origin == "declared"
    with pytest.raises(OptionError, match="expected a list of states"):
        declare("x", "text")


def test_states_sort_by_type_then_value() -> None:
    assert sort_states(["b", 2, True, "a", 1, False, 10]) == (False, True, 1, 2, 10, "a", "b")
    days = [datetime.date(2024, 1, 2), datetime.date(2023, 1, 2)]
    assert sort_states(days) == tuple(sorted(days))


@given(st.lists(STATES, max_size=8), st.randoms())
def test_sorted_states_do_not_depend_on_order(values: list[object], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = sort_states(values), sort_states(shuffled)
    assert list(map(state_key, one)) == list(map(state_key, other))


@given(st.lists(STATES, max_size=6), st.lists(STATES, max_size=6))
def test_merging_seen_states_is_their_union(left: list[object], right: list[object]) -> None:
    def seen(values: list[object]) -> Variable:
        return Variable("x", "discrete", sort_states(values))

    merged = seen(left).merge(seen(right))
    assert merged == seen(right).merge(seen(left)) == seen(left + right)


def test_declared_states_are_closed() -> None:
    declared = Variable.discrete("x", ["b", "a"])
    seen = Variable("x", "discrete", ("a",))
    assert declared.merge(seen).states == seen.merge(declared).states == ("b", "a")
    with pytest.raises(MergeError, match=r"declared states 'b', 'a'.*also has 'c'"):
        declared.merge(Variable("x", "discrete", ("c",)))


def test_categories_keep_their_order_and_grow() -> None:
    low = Variable.discrete("x", ["low", "high"], "category")
    assert low.merge(Variable("x", "discrete", ("high",))).states == ("low", "high")
    assert low.merge(Variable("x", "discrete", ("none",))).states == ("low", "high", "none")
    assert Variable("x", "discrete", ("none",)).merge(low).states == ("low", "high", "none")


def test_kinds_do_not_merge() -> None:
    with pytest.raises(MergeError, match="real on one side and discrete"):
        Variable("x", "real").merge(Variable("x", "discrete", ("a",)))


def test_domain_finds_variables_by_any_hashable_name() -> None:
    names = [0, ("a", 1), "", None, 2.5]
    domain = Domain(Variable(name, "real") for name in names)
    assert domain.names == tuple(names)
    assert all(domain[name].name == name for name in names)
    with pytest.raises(MissingColumnError, match="no variable 'missing'"):
        domain["missing"]
    with pytest.raises(OptionError, match="Two variables are named 0"):
        Domain([Variable(0, "real"), Variable(0, "real")])


def test_domains_merge_by_name() -> None:
    left = Domain([Variable("a", "discrete", (1,)), Variable("b", "real")])
    right = Domain([Variable("c", "real"), Variable("a", "discrete", (2,))])
    merged = left.merge(right)
    assert merged.names == ("a", "b", "c")
    assert merged["a"].states == (1, 2)
    assert merged.shape(["a"]) == (2,)


def test_copies_are_equal() -> None:
    domain = Domain([Variable.discrete("a", [True, 1, "1"]), Variable("b", "count")])
    for twin in (pickle.loads(pickle.dumps(domain)), copy.deepcopy(domain)):
        assert twin == domain
        assert hash(twin) == hash(domain)
        assert twin["a"].origin == "declared"
        assert twin["a"].index(1) == 1
    assert domain != Domain([Variable.discrete("a", [1, True, "1"]), Variable("b", "count")])


@pytest.mark.parametrize(
    ("states", "values"),
    [
        (["TRUE", "FALSE"], [True, False]),
        (["false", "true"], [False, True]),
        ([True, False], ["True", "False"]),
        ([False, True], ["TRUE", "FALSE"]),
        (["1", "2"], [1, 2]),
        ([1, 2], ["1", "2"]),
        (["0.5", "1.5"], [0.5, 1.5]),
    ],
)
def test_the_advice_on_states_of_another_type_makes_states_of_them(states: list[Any], values: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    data = pandas.DataFrame({"v": values})
    net = sf.BayesianNetwork({"v": []}, states={"v": states}, prior=1.0)
    with pytest.raises(sf.UnknownStateError) as caught:
        net.fit(data)
    made = re.search(r"make the column so, as by (data\['v'\]\..*?\)), or by dtype=", str(caught.value))
    assert made is not None, str(caught.value)
    fitted = net.fit(data.assign(v=eval(made[1], {"data": data})))
    assert fitted.report_.rows == len(values)
