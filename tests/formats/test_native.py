"""Reading and writing by ending, and whole summaries: exact, and refused when a figure is impossible."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import storage
from suffice.answers import CountTable, MomentSums, PatternTable, TermSums
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError
from suffice.formats import FORMATS, Format, native, read, register, write
from suffice.statistics import Counts, Moments, Patterns, Statistic, Summary, Sums
from suffice.storage.encoding import CLASSES

# --------------------------------------------------------------------------------------------------------------------
# The table of formats
# --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["m.json", "m.suffice", "M.JSON", "a.bif.json"])
def test_the_ending_says_the_format(tmp_path: Path, name: str) -> None:
    domain = Domain([Variable.discrete("rain", [False, True])])
    for path in (tmp_path / name, str(tmp_path / name)):
        write(domain, path)
        assert read(path) == domain
        assert sf.read(path) == domain


def test_an_unknown_ending_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    for path in (tmp_path / "m.pkl", "m", tmp_path / "json"):
        with pytest.raises(OptionError, match=r"no known ending; known: \.json, \.suffice"):
            read(path)
        with pytest.raises(OptionError, match="no known ending"):
            write(Domain(), path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.suffice"):
        read(tmp_path / "absent.suffice")


def test_another_format_enters_by_its_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMATS, "_known", dict(FORMATS._known))
    register(".short.json", lambda path: Path(path).read_text())
    (tmp_path / "m.short.json").write_text("read by the longer ending")
    assert native.read(tmp_path / "m.short.json") == "read by the longer ending"
    with pytest.raises(OptionError, match="can be read but not written"):
        native.write(Domain(), tmp_path / "m.short.json")

    def save(path: Any, model: Any) -> None:
        Path(path).write_text(repr(model))

    register(".short.json", read, save)
    native.write(Domain(), tmp_path / "m.short.json")
    assert (tmp_path / "m.short.json").read_text() == "Domain()"


class Offered:
    """An entry point, as another package declares it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def load(self) -> Any:
        return self.value


def test_other_packages_offer_formats_and_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Offering(sf.Normal):
        """A model of another package."""

    texts = Format(lambda path: Path(path).read_text())
    groups = {
        "suffice.formats": [Offered(".words", texts), Offered(".json", texts)],
        "suffice.models": [Offered("Offering", Offering)],
    }
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: groups.get(group, []))
    for registry in (FORMATS, CLASSES):
        monkeypatch.setattr(registry, "_known", dict(registry._known))
    (tmp_path / "m.words").write_text("one two")
    assert read(tmp_path / "m.words") == "one two"
    assert ".words" in FORMATS.names()
    sf.Normal(0.0, 1.0).write(tmp_path / "m.json")
    assert read(tmp_path / "m.json").mean_ == 0.0  # What the package has itself is not replaced.
    Offering(1.0, 2.0).write(tmp_path / "mine.json")
    found = read(tmp_path / "mine.json")
    assert type(found) is Offering
    assert found.parameters_ == {"mean": 1.0, "variance": 2.0}


def test_a_class_of_ones_own_is_registered_for_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(sf.Normal):
        """A model of the user."""

    with pytest.raises(OptionError, match="an object of class Mine, which suffice does not export"):
        Mine(1.0, 2.0).write(tmp_path / "mine.suffice")
    monkeypatch.setattr(CLASSES, "_known", dict(CLASSES._known))
    storage.register(Mine)
    Mine(1.0, 2.0).write(tmp_path / "mine.suffice")
    assert type(read(tmp_path / "mine.suffice")) is Mine


# --------------------------------------------------------------------------------------------------------------------
# Summaries
# --------------------------------------------------------------------------------------------------------------------

STATES = ["1", 1, True, (0.5, "half")]
DOMAIN = Domain(
    [
        Variable.discrete("a", STATES),
        Variable.discrete("b", ["no", "yes"], origin="category"),
        Variable.discrete("wide", range(300), origin="seen"),
        Variable.discrete(("wide", 2), range(300), origin="seen"),
        Variable("x", "real"),
        Variable("y", "real"),
    ]
)


def pair(values: Any) -> Any:
    """High parts, and low parts that no single float64 could keep beside them."""
    high = np.asarray(values, dtype=np.float64)
    return np.stack([high, high * 2.0**-60])


def summary_of(statistic: Statistic, answer: Any) -> Summary:
    return Summary(DOMAIN, {statistic: answer}, rows=7, weight=0.1 + 0.2)


SUMMARIES: dict[str, Summary] = {
    "dense": summary_of(Counts(("a", "b")), CountTable.of(np.array([[0.1, 5e-324], [1, 2], [0, 0], [1e300, 3]]))),
    "sparse": summary_of(
        Counts(("wide", ("wide", 2))),
        CountTable.sparse((300, 300), np.array([[0, 299], [7, 3], [299, 0]]), np.array([1, 2.5, 1e-9])),
    ),
    "no axes": summary_of(Counts(()), CountTable.of(np.array(7.0))),
    "moments": summary_of(
        Moments(("x", "y")), MomentSums(pair(7.0), pair([0.1, -0.3]), pair([[1e-300, 0.7], [0.7, 1e300]]))
    ),
    "sums": summary_of(Sums.of(("x", "x"), ("x", "log"), ("y", "x")), TermSums(pair(7.0), pair([0.1, -2.5, 1e17]))),
    "patterns with gaps": summary_of(
        Patterns(("a", "b")),
        PatternTable.of(np.array([[-1, 0], [0, -1], [3, 1]], dtype=np.int32), np.array([1, 0.25, 3])),
    ),
    "mixed patterns with gaps": summary_of(
        Patterns(("a", "x")),
        PatternTable.of(np.array([[0.0, np.nan], [np.nan, -0.1], [3, 1e-320]]), np.array([1.0, 2, 3])),
    ),
}
EVERYTHING = Summary(DOMAIN, {key: answer for s in SUMMARIES.values() for key, answer in s.answers.items()}, 12, 3.5)


def arrays(summary: Summary) -> list[tuple[Any, ...]]:
    """Every array of the answers, as type, shape and bytes."""
    return [
        (key, name, value.dtype, value.shape, value.tobytes())
        for key, answer in summary.answers.items()
        for name, value in answer.to_dict().items()
    ]


@pytest.mark.parametrize("ending", storage.ENDINGS)
@pytest.mark.parametrize("summary", [*SUMMARIES.values(), EVERYTHING], ids=[*SUMMARIES, "everything"])
def test_a_summary_comes_back_to_the_bit(tmp_path: Path, summary: Summary, ending: str) -> None:
    summary.write(tmp_path / f"s{ending}")
    kept = read(tmp_path / f"s{ending}")
    for again in (kept, copy.deepcopy(kept), pickle.loads(pickle.dumps(kept))):
        assert isinstance(again, Summary)
        assert again == summary
        assert arrays(again) == arrays(summary)
        assert (again.rows, again.weight) == (summary.rows, summary.weight)
        assert [type(state) for state in again.domain["a"].states] == [type(state) for state in STATES]
        assert [v.origin for v in again.domain.variables] == [v.origin for v in summary.domain.variables]
    # What was loaded adds up like what was never saved.
    assert kept + summary == summary + summary


def test_the_sparse_table_stays_sparse_in_the_file() -> None:
    assert len(storage.dumps(SUMMARIES["sparse"])) < 10_000


# --------------------------------------------------------------------------------------------------------------------
# Summaries that cannot be
# --------------------------------------------------------------------------------------------------------------------


def answer_of(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["content"]["state"]["answers"][0]
    return found


def put_values(name: str, values: list[Any]) -> Callable[[dict[str, Any]], None]:
    """Replace the first values of one array of the answer."""

    def change(document: dict[str, Any]) -> None:
        old = answer_of(document)["answer"][name]["values"]
        old[: len(values)] = values

    return change


def put_array(name: str, dtype: str, shape: list[int], values: list[Any]) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        answer_of(document)["answer"][name] = {"$": "array", "dtype": dtype, "shape": shape, "values": values}

    return change


def put_entry(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: answer_of(document).update({name: value})


def put_state(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["content"]["state"].update({name: value})


def repeat_answer(document: dict[str, Any]) -> None:
    document["content"]["state"]["answers"] *= 2


IMPOSSIBLE: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "negative count": ("dense", put_values("values", [-1.0])),
    "count of NaN": ("dense", put_values("values", ["nan"])),
    "infinite count": ("dense", put_values("values", ["inf"])),
    "wrong shape": ("dense", put_array("values", "float64", [2, 4], [1.0] * 8)),
    "wrong type": ("dense", put_array("values", "int64", [4, 2], [1] * 8)),
    "cell outside": ("sparse", put_values("cells", [300])),
    "cell below zero": ("sparse", put_values("cells", [-1])),
    "cell twice": ("sparse", put_values("cells", [7, 3])),
    "cells of floats": ("sparse", put_array("cells", "float64", [3, 2], [1.0] * 6)),
    "cells of one column": ("sparse", put_array("cells", "int32", [3, 1], [1, 2, 3])),
    "fewer weights than cells": ("sparse", put_array("values", "float64", [2], [1.0, 2.0])),
    "negative weight": ("moments", put_values("weight_pair", [-1.0])),
    "infinite moment": ("moments", put_values("cross_pair", ["inf"])),
    "moments of one variable": ("moments", put_array("total_pair", "float64", [2, 1], [1.0, 0.0])),
    "sums of other terms": ("sums", put_entry("terms", [["x", "x"]])),
    "unknown function": ("sums", put_entry("terms", [["x", "exec"]])),
    "code outside": ("patterns with gaps", put_values("rows", [4])),
    "code below the gap": ("patterns with gaps", put_values("rows", [-2])),
    "float codes": ("patterns with gaps", put_array("rows", "float64", [3, 2], [0.0] * 6)),
    "code between two": ("mixed patterns with gaps", put_values("rows", [0.5])),
    "pattern weight NaN": ("patterns with gaps", put_values("weights", ["nan"])),
    "unknown question": ("dense", put_entry("question", "Summary")),
    "question of no kind": ("dense", put_entry("question", ["Counts"])),
    "unknown variable": ("dense", put_entry("variables", ["a", "nobody"])),
    "moments of an unknown variable": ("moments", put_entry("variables", ["x", "nobody"])),
    "variable twice": ("dense", put_entry("variables", ["b", "b"])),
    "no answer": ("dense", put_entry("answer", None)),
    "answer twice": ("dense", repeat_answer),
    "no domain": ("dense", put_state("domain", None)),
    "domain of another kind": ("no axes", put_state("domain", {"a": 1})),
    "negative rows": ("dense", put_state("rows", -1)),
    "rows as text": ("dense", put_state("rows", "7")),
    "half a row": ("dense", put_state("rows", 6.5)),
    "negative total": ("dense", put_state("weight", -1.0)),
    "total of NaN": ("dense", put_state("weight", {"$": "float", "value": "nan"})),
    "total as text": ("dense", put_state("weight", "1.0")),
    "answers of no kind": ("dense", put_state("answers", 5)),
}


@pytest.mark.parametrize(("name", "change"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_an_impossible_summary_is_refused(tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(storage.dumps(SUMMARIES[name]))
    assert storage.loads(json.dumps(document)) == SUMMARIES[name]
    change(document)
    path = tmp_path / "impossible.json"
    path.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match=r"impossible\.json.*this is no Summary"):
        read(path)


@pytest.mark.parametrize("ending", storage.ENDINGS)
def test_a_damaged_summary_gives_the_one_error_or_a_valid_summary(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"s{ending}"
    write(EVERYTHING, path)
    whole = path.read_bytes()
    valid = 0
    for place in range(0, len(whole), 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1, 2, 16)[place % 3]]) + whole[place + 1 :])
        try:
            kept = read(path)
        except FileFormatError:
            continue
        valid += 1
        assert storage.loads(storage.dumps(kept)) == kept
        assert ending == ".json" or kept == EVERYTHING
    assert 0 < valid < len(whole) / 11


def test_what_is_read_is_of_the_class_that_is_expected(tmp_path: Path) -> None:
    sf.Normal(1.0, 2.0).write(tmp_path / "law.json")
    law = sf.read(tmp_path / "law.json", sf.Normal)
    assert (law.mean_, law.variance_) == (1.0, 2.0)
    with pytest.raises(sf.FileFormatError, match="holds a Normal; expected a GLM"):
        sf.read(tmp_path / "law.json", sf.GLM)
    with pytest.raises(sf.OptionError, match="kind is 'GLM'; expected the class of what the file holds"):
        sf.read(tmp_path / "law.json", "GLM")  # type: ignore[call-overload]
