"""What is saved comes back to the bit, the same content gives the same bytes, and the rest is refused."""

import copy
import datetime
import decimal
import json
import os
import pickle
import subprocess
import sys
import zipfile
import zoneinfo
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import suffice
from suffice import storage
from suffice.domain import Domain, Variable
from suffice.errors import OptionError
from suffice.storage import encoding
from trees import identical

PARIS = zoneinfo.ZoneInfo("Europe/Paris")


def round_trips(tree: Any, folder: Path) -> list[Any]:
    """The tree after each way of keeping it."""
    kept = [storage.loads(storage.dumps(tree))]
    for ending in storage.ENDINGS:
        storage.save(folder / f"kept{ending}", tree)
        kept.append(storage.load(folder / f"kept{ending}"))
    return kept


# --------------------------------------------------------------------------------------------------------------------
# Exact round trips
# --------------------------------------------------------------------------------------------------------------------

ZONES = st.sampled_from(
    [
        None,
        datetime.UTC,
        datetime.timezone(datetime.timedelta(hours=-3, seconds=1), "odd"),
        zoneinfo.ZoneInfo("UTC"),
        PARIS,
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text(st.characters())
    | st.text(st.characters(categories=["Cs", "Ll"]), max_size=4)
    | st.binary(max_size=20)
    | st.dates()
    | st.times(timezones=ZONES)
    | st.datetimes(timezones=ZONES)
    | st.timedeltas()
    | st.decimals(allow_nan=False)
)
KEYS = SCALARS | st.tuples(SCALARS, SCALARS)
DTYPES = st.sampled_from(sorted(encoding.DTYPES)).map(np.dtype)
ARRAYS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
TREES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(tree=TREES)
@example(tree={"$": "array", "dtype": "object"})
@example(tree={"": [-0.0, 5e-324, 1.7976931348623157e308, float("inf"), -(2**63), 2**64]})
@example(tree="\ud83d\ude00 is two code points here, \U0001f600 one")
@example(tree={"\ud800": 1})
@example(tree=np.array([-0.0, 5e-324, np.inf, -np.inf, np.nan, 1e308]))
def test_every_tree_comes_back_to_the_bit(tree: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("round")
    for kept in round_trips(tree, folder):
        assert identical(kept, tree)
        assert identical(copy.deepcopy(kept), tree)
        assert identical(pickle.loads(pickle.dumps(kept)), tree)


@pytest.mark.parametrize(
    "value",
    [
        pd.Timestamp("2024-03-01 12:00:00.123456789"),
        pd.Timestamp("1969-12-31").as_unit("s"),
        # The hour that the clocks of Paris show twice, both times.
        pd.Timestamp("2024-10-27 00:30", tz="UTC").tz_convert(PARIS),
        pd.Timestamp("2024-10-27 01:30", tz="UTC").tz_convert(PARIS),
        pd.Timedelta(-1, "ns"),
        pd.Timedelta(3, "s"),
        pd.Interval(0.1, 0.30000000000000004, closed="left"),
        pd.Interval(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-02-01")),
        pd.Period("2024-03", freq="M"),
        np.datetime64("2024-03-01T12", "h"),
        np.datetime64(7, ("s", 25)),
        np.timedelta64(3, "ns"),
        datetime.datetime(2024, 10, 27, 2, 30, tzinfo=PARIS, fold=1),
        datetime.time(2, 30, fold=1),
        decimal.Decimal("-0.00"),
        decimal.Decimal("1.10E+30"),
    ],
    ids=repr,
)
def test_dates_spans_and_decimals_keep_their_type_unit_and_zone(value: Any, tmp_path: Path) -> None:
    for (kept,) in round_trips([value], tmp_path):
        assert kept == value
        assert type(kept) is type(value)
        assert repr(kept) == repr(value)
        for part in ("unit", "fold", "dtype", "tzinfo"):
            assert getattr(kept, part, None) == getattr(value, part, None)


def test_a_signalling_nan_decimal_and_a_not_a_time_survive(tmp_path: Path) -> None:
    for number, moment in round_trips([decimal.Decimal("sNaN7"), np.datetime64("NaT", "s")], tmp_path):
        assert number.as_tuple() == decimal.Decimal("sNaN7").as_tuple()
        assert np.isnat(moment)
        assert moment.dtype == np.dtype("M8[s]")


def test_numpy_scalars_become_the_python_values_they_stand_for(tmp_path: Path) -> None:
    tree = [
        np.float64(0.1),
        np.float32(0.1),
        np.int8(-3),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.str_("a"),
        np.bytes_(b"b"),
    ]
    for kept in round_trips(tree, tmp_path):
        assert identical(kept, [0.1, 0.10000000149011612, -3, 2**64 - 1, True, "a", b"b"])


def test_arrays_of_any_layout_come_back_contiguous_writable_and_apart(tmp_path: Path) -> None:
    base = np.arange(24.0).reshape(4, 6)
    tree = [base.T, base[::2, ::-3], base.astype(">f8"), np.broadcast_to(base[0], (3, 6)), np.arange(5, dtype=">i2")]
    for kept in round_trips(tree, tmp_path):
        for found, wanted in zip(kept, tree, strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.flags.c_contiguous
            assert found.flags.writeable
            assert found.dtype.isnative
        kept[0][:] = -1.0
        np.testing.assert_array_equal(kept[1], tree[1])


def test_the_zip_keeps_even_the_payload_of_a_nan(tmp_path: Path) -> None:
    bits = np.array([0x7FF8000000000123, 0xFFF0000000000001], dtype=np.uint64)
    storage.save(tmp_path / "nan.suffice", bits.view(np.float64))
    np.testing.assert_array_equal(storage.load(tmp_path / "nan.suffice").view(np.uint64), bits)


STATES = [
    "1",
    1,
    True,
    0.5,
    "",
    "é€😀",
    b"1",
    (1, "1"),
    (True, ("deep", 2.5)),
    datetime.date(2024, 3, 1),
    datetime.datetime(2024, 3, 1),
    pd.Timestamp("2024-03-02"),
    np.datetime64("2024-03-03"),
    decimal.Decimal("1.50"),
    pd.Interval(0, 1),
]


def test_states_keep_order_and_type(tmp_path: Path) -> None:
    domain = Domain(
        [
            Variable.discrete(("a", 1), STATES, origin="category"),
            Variable("x", "real"),
            Variable(3, "count"),
            Variable.discrete("", [1.0]),
        ]
    )
    for kept in round_trips(domain, tmp_path):
        for again in (kept, copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
            assert again == domain
            assert again.names == (("a", 1), "x", 3, "")
            assert [type(state) for state in again[("a", 1)].states] == [type(state) for state in STATES]
            assert again[("a", 1)].states == tuple(STATES)
            assert [v.origin for v in again.variables] == ["category", "seen", "seen", "declared"]


def test_sets_as_names_come_back_and_are_written_in_one_order(tmp_path: Path) -> None:
    members = ["pear", 1, 2.5, None, ("a", 0), b"x", frozenset({"in", "side"})]
    name = frozenset(members)
    domain = Domain([Variable.discrete(name, [frozenset(), frozenset({"u"})]), Variable("x", "real")])
    for kept in round_trips(domain, tmp_path):
        assert kept == domain
        assert kept.names == (name, "x")
        assert {type(member) for member in kept.names[0]} == {type(member) for member in members}
    # Equal sets that were built in other orders iterate in other orders.
    wide = [frozenset(range(0, 8000, 1000)), frozenset(reversed(range(0, 8000, 1000)))]
    assert storage.dumps(wide[0]) == storage.dumps(wide[1])
    texts = json.loads(storage.dumps(frozenset("hgfedcba")))["content"]["items"]
    assert texts == list("abcdefgh")


# --------------------------------------------------------------------------------------------------------------------
# The layout of the file
# --------------------------------------------------------------------------------------------------------------------


def test_the_header_says_what_it_is() -> None:
    header = {"format": "suffice", "version": 1, "library": suffice.__version__}
    assert json.loads(storage.dumps([1])) == {**header, "content": [1]}


def test_the_zip_is_readable_without_the_library(tmp_path: Path) -> None:
    tree = {
        "flags": np.array([True, False, True]),
        "table": np.array([[0.25, 0.75]]),
        "codes": np.array([7, -7], np.int32),
    }
    storage.save(tmp_path / "m.suffice", tree)
    with zipfile.ZipFile(tmp_path / "m.suffice") as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["model.json", "arrays.npy"]
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        nodes = json.loads(archive.read("model.json"))["content"]
        with archive.open("arrays.npy") as member:
            flat = np.load(member, allow_pickle=False)
    assert (flat.dtype, flat.shape) == (np.dtype(np.float64), (4,))
    assert [node["offset"] for node in nodes.values()] == [0, 1, 3]
    np.testing.assert_array_equal(flat[1:3].reshape(nodes["table"]["shape"]), tree["table"])
    np.testing.assert_array_equal(flat[3:].view("<i4"), tree["codes"])


def test_large_arrays_cost_their_own_size_and_not_more(tmp_path: Path) -> None:
    tree = {place: np.full(50, float(place)) for place in range(2000)}
    storage.save(tmp_path / "m.suffice", tree)
    values = 2000 * 50 * 8
    assert values < (tmp_path / "m.suffice").stat().st_size < values + 2000 * 200


SEEDED = """
import numpy as np, sys
from suffice import storage
from suffice.domain import Domain, Variable
names = {"alpha", "beta", "gamma", "delta"}
tree = {"domain": Domain([Variable.discrete(name, ["no", "yes"]) for name in sorted(names)]), ("t", 1): np.arange(5)}
for ending in storage.ENDINGS:
    storage.save("seeded" + ending, tree)
    print(open("seeded" + ending, "rb").read().hex())
"""


def test_the_bytes_depend_on_the_content_alone(tmp_path: Path) -> None:
    outputs = set()
    for seed in ("0", "1", "77"):
        outputs.add(
            subprocess.run(
                [sys.executable, "-c", SEEDED],
                cwd=tmp_path,
                env={**os.environ, "PYTHONHASHSEED": seed},
                check=True,
                capture_output=True,
            ).stdout
        )
    assert len(outputs) == 1


def test_saving_what_was_loaded_gives_the_same_bytes(tmp_path: Path) -> None:
    tree = {"a": np.linspace(0, 1, 7), "b": (1, {2: "x"}), "c": Domain([Variable.discrete("v", STATES)])}
    for ending in storage.ENDINGS:
        first, second = tmp_path / f"first{ending}", tmp_path / f"second{ending}"
        storage.save(first, tree)
        storage.save(second, storage.load(first))
        assert first.read_bytes() == second.read_bytes()


# --------------------------------------------------------------------------------------------------------------------
# What has no place in a file
# --------------------------------------------------------------------------------------------------------------------


class Stranger:
    """Looks like an object of the library, but is not exported by it."""

    def to_dict(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Stranger":
        return cls()


class SubDomain(Domain):
    """Would come back as something else."""


class Text(str):
    """Would come back as something else."""


def nested(depth: int) -> list[Any]:
    """Lists inside lists."""
    tree: list[Any] = []
    for _ in range(depth):
        tree = [tree]
    return tree


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({1}, "of type set"),
        (1j, "complex"),
        (object(), "object"),
        (Text("a"), "Text"),
        (Stranger(), "Stranger"),
        (SubDomain(), "SubDomain"),
        (print, "builtin_function_or_method"),
        (np.array([None]), "object"),
        (np.array(["text"]), "<U4"),
        (np.array([1j]), "complex128"),
        (np.array([(1, 2.0)], dtype="i4,f8"), "void|i4"),
        (np.longdouble(1), "longdouble"),
        (np.empty((0, 2**25)), "an empty one"),
        (np.zeros((1,) * 33), "too many axes"),
        (10**5000, "too many digits"),
        (decimal.Decimal("1E+20000"), "exponent"),
        (pd.NaT, "NaT"),
        (pd.NA, "NAType"),
        (nested(100), "nested"),
        (LOOP, "contains itself"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_would_not_come_back_is_refused(value: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        storage.dumps({"here": value})


def test_the_refusal_says_where() -> None:
    with pytest.raises(OptionError, match=r"content\['a'\]\[1\]\['b'\]: it is a value of type set"):
        storage.dumps({"a": [0, {"b": set()}]})
