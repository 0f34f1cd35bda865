"""Damaged, newer and hostile files: each is refused by name and reason, and costs next to nothing."""

import datetime
import json
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice import storage
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError
from suffice.storage import files
from trees import identical


def peak_while(action: Callable[[], Any]) -> int:
    """Bytes allocated at the worst moment of a call that must raise `FileFormatError`."""
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):
            action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def document(content: str, **header: Any) -> str:
    """A file with the given JSON text as its content."""
    parts = {"format": "suffice", "version": 1, "library": "0.1.0", **header}
    return json.dumps(parts)[:-1] + f', "content": {content}}}'


def array(dtype: Any = "float64", shape: Any = (1,), values: Any = (1.0,)) -> str:
    return json.dumps({"$": "array", "dtype": dtype, "shape": shape, "values": values})


HOSTILE = {
    "nothing": ("", "no valid JSON"),
    "words": ("hello", "no valid JSON"),
    "another kind": ('{"nodes": []}', "another kind"),
    "a list": ("[]", "another kind"),
    "newer": (document("1", version=2, library="9.1"), r"version 2, written by suffice '9.1'.*upgrade suffice"),
    "version of no kind": (document("1", version="1"), "version '1'"),
    "version zero": (document("1", version=0), "version 0"),
    "version true": (document("1", version=True), "version True"),
    "extra part": (document("1", extra=1), "extra"),
    "no content": ('{"format": "suffice", "version": 1, "library": ""}', "expected"),
    "trailing": (document("1") + "x", "Extra data"),
    "key twice": (document('{"a": 1, "a": 2}'), "a key occurs twice"),
    "dict key twice": (document('{"$": "dict", "items": [[1, 2], [1, 3]]}'), "a key occurs twice"),
    "dict of no pairs": (document('{"$": "dict", "items": [[1, 2, 3]]}'), "pair"),
    "dict of no list": (document('{"$": "dict", "items": 5}'), "needs a list"),
    "unhashable key": (document('{"$": "dict", "items": [[[], 2]]}'), "unhashable"),
    "tuple with more": (document('{"$": "tuple", "items": [], "x": 1}'), "nothing else"),
    "deep lists": (document("[" * 100_000), "nested"),
    "rather deep lists": (document("[" * 100 + "]" * 100), "nested more than 64 deep"),
    "deep objects": (document('{"a":' * 100_000), "nested"),
    "huge integer": (document("1" * 100_000), "digits"),
    "huge float": (document("1e999"), "range of a float64"),
    "NaN": (document("NaN"), "NaN is not a JSON number"),
    "Infinity": (document("[-Infinity]"), "Infinity is not a JSON number"),
    "set with twins": (document('{"$": "frozenset", "items": [1, 1]}'), "a member of a set occurs twice"),
    "set of lists": (document('{"$": "frozenset", "items": [[1]]}'), "unhashable"),
    "unknown tag": (document('{"$": "lambda"}'), "tag 'lambda' is unknown; known tags: 'array', 'bytes'"),
    "tag of no kind": (document('{"$": ["tuple"]}'), "unknown"),
    "unknown class": (document('{"$": "object", "class": "Popen", "state": {}}'), "'Popen' is no class of suffice"),
    "dotted class": (document('{"$": "object", "class": "os.system", "state": {}}'), "no class of suffice"),
    "exported function": (document('{"$": "object", "class": "read", "state": {}}'), "no class of suffice"),
    "exported error": (document('{"$": "object", "class": "DataError", "state": {}}'), "no class of suffice"),
    "class of no kind": (document('{"$": "object", "class": ["Domain"], "state": {}}'), "no class of suffice"),
    "object without state": (document('{"$": "object", "class": "Domain"}'), "exactly a class and a state"),
    "object with a list": (document('{"$": "object", "class": "Domain", "state": []}'), "exactly"),
    "empty state": (document('{"$": "object", "class": "Domain", "state": {}}'), "no Domain: 'variables' is missing"),
    "domain of numbers": (document('{"$": "object", "class": "Domain", "state": {"variables": [1]}}'), "no Domain"),
    "object array": (document(array("object")), "type 'object'"),
    "record array": (document(array("f8,(99999,99999)f8")), "an array has the type"),
    "type of no kind": (document(array(["float64"])), "an array has the type"),
    "too few values": (document(array(shape=[10**9])), "has 1 values"),
    "huge shape": (document(array(shape=[10**18, 10**18, 0], values=[])), "an array has the shape"),
    "huge empty shape": (document(array(shape=[0, 10**9], values=[])), "an array has the shape"),
    "negative shape": (document(array(shape=[-1])), "an array has the shape"),
    "fractional shape": (document(array(shape=[1.0])), "an array has the shape"),
    "many axes": (document(array(shape=[1] * 33)), "an array has the shape"),
    "no shape": (document('{"$": "array", "dtype": "float64", "values": []}'), "needs a list 'shape'"),
    "offset in a text": (
        document('{"$": "array", "dtype": "int8", "shape": [1], "offset": 0}'),
        "needs a list 'values'",
    ),
    "text in floats": (document(array(values=["1.0"])), "no number"),
    "lists in floats": (document(array(values=[[1.0]])), "no number"),
    "truth in floats": (document(array(values=[True])), "no number"),
    "overflow in floats": (document(array().replace("1.0", "1e999")), "beyond the range"),
    "overflow in float32": (document(array("float32", values=[1e300])), "beyond the range"),
    "digits of float32": (document(array("float32", values=[0.1])), "the digits of a float32"),
    "float in integers": (document(array("int8", values=[1.5])), "no int"),
    "truth in integers": (document(array("int8", values=[True])), "no int"),
    "overflow in integers": (document(array("int8", values=[300])), "300"),
    "integer in truths": (document(array("bool", values=[1])), "no bool"),
    "bad bytes": (document('{"$": "bytes", "base64": "#"}'), "no bytes"),
    "bad date": (document('{"$": "date", "value": "2024-13-01"}'), "no date"),
    "bad zone": (document('{"$": "zone", "name": "../../etc/passwd"}'), "no zone"),
    "folder as zone": (document('{"$": "zone", "name": "Europe"}'), "no zone"),
    "bad decimal": (document('{"$": "decimal", "value": "one"}'), "no decimal"),
    "huge decimal": (document('{"$": "decimal", "value": "1E+999999999"}'), "exponent"),
    "bad part": (document('{"$": "date", "value": "2024-01-01", "more": 1}'), "no date"),
    "bad float": (document('{"$": "float", "value": "1.5"}'), "no float"),
    "bad unit": (document('{"$": "numpy-time", "dtype": "datetime64[qq]", "value": 1}'), "no numpy-time"),
    "type as unit": (document('{"$": "numpy-time", "dtype": "object", "value": 1}'), "no numpy-time"),
    "bad timestamp": (document('{"$": "timestamp", "utc": "now", "zone": null}'), "no timestamp"),
    "bad period": (document('{"$": "period", "ordinal": 1, "frequency": "nonsense"}'), "no period"),
}


@pytest.mark.parametrize(("text", "words"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_is_refused_with_its_name_and_the_reason(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(text or " ", encoding="utf-8")
    with pytest.raises(FileFormatError, match=rf"(?s)hostile\.json.*{words}") as caught:
        storage.load(path)
    assert len(str(caught.value)) < 1000
    assert peak_while(lambda: storage.load(path)) < 20_000_000
    with pytest.raises(FileFormatError, match=words):
        storage.loads(text)


@pytest.mark.parametrize(
    "state",
    [
        {"kind": "complex"},
        {"kind": ["discrete"]},
        {"origin": "guessed"},
        {"states": "ab"},
        {"states": ["a", "a"]},
        {"states": ["a", None]},
        {"states": [["a"]]},
        {"states": {"a": 1}},
        {"name": ["a"]},
        {"kind": "real"},
    ],
    ids=str,
)
def test_a_variable_that_no_constructor_would_make_is_refused(state: dict[str, Any]) -> None:
    good = {"name": "a", "kind": "discrete", "states": ["a", "b"], "origin": "seen"}
    node = {"$": "object", "class": "Variable", "state": good}
    assert storage.loads(document(json.dumps(node))).states == ("a", "b")
    with pytest.raises(FileFormatError, match="no Variable"):
        storage.loads(document(json.dumps({**node, "state": good | state})))


@pytest.mark.parametrize(
    "error", [KeyError("x"), TypeError("x"), ValueError("x"), MemoryError(), RecursionError()], ids=repr
)
def test_whatever_a_class_makes_of_a_hostile_state_the_file_is_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    storage.save(tmp_path / "m.json", Domain())

    def refuse(plain: dict[str, Any]) -> Domain:
        raise error

    monkeypatch.setattr(Domain, "from_dict", refuse)
    with pytest.raises(FileFormatError, match=r"m\.json.*this is no Domain") as caught:
        storage.load(tmp_path / "m.json")
    assert caught.value.__cause__ is not None


def test_files_of_another_kind(tmp_path: Path) -> None:
    cases = {
        "empty.json": (b"", "it is empty"),
        "empty.suffice": (b"", "it is empty"),
        "text.suffice": (storage.dumps(1).encode(), "it is no zip"),
        "zip.json": (b"PK\x03\x04", r"should end in '\.suffice'"),
        "latin.json": ('{"é": 1}'.encode("latin-1"), "utf-8"),
        "marked.json": (b"\xef\xbb\xbf{}", "BOM"),
        "pickle.json": (pickle.dumps([1]), "utf-8"),
        "picture.suffice": (b"\x89PNG\r\n\x1a\n" + bytes(100), "it is no zip"),
    }
    for name, (content, words) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FileFormatError, match=rf"(?s){name}.*{words}"):
            storage.load(tmp_path / name)


def zipped(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def blob(values: Any) -> bytes:
    flat = np.asarray(values, dtype=np.float64)
    return files._npy_header(len(flat)) + flat.tobytes()


def nodes(*places: tuple[str, list[int], int]) -> bytes:
    found = [{"$": "array", "dtype": d, "shape": s, "offset": o} for d, s, o in places]
    return document(json.dumps(found)).encode()


FLAT = blob([1.0, 2.0, 3.0])
HOSTILE_ZIPS = {
    "one member": ({"model.json": nodes()}, "does not hold"),
    "other order": ({"arrays.npy": FLAT, "model.json": nodes()}, "does not hold"),
    "third member": ({"model.json": nodes(), "arrays.npy": blob([]), "x": b""}, "does not hold"),
    "beyond the end": ({"model.json": nodes(("float64", [4], 0)), "arrays.npy": FLAT}, "beyond the end"),
    "far beyond": ({"model.json": nodes(("float64", [10**17, 10**17], 0)), "arrays.npy": FLAT}, "beyond the end"),
    "overlap": ({"model.json": nodes(("float64", [2], 0), ("float64", [2], 1)), "arrays.npy": FLAT}, "start at 2"),
    "the same twice": (
        {"model.json": nodes(("float64", [3], 0), ("float64", [3], 0)), "arrays.npy": FLAT},
        "start at 3",
    ),
    "hole": ({"model.json": nodes(("float64", [2], 1)), "arrays.npy": FLAT}, "start at 0"),
    "negative offset": ({"model.json": nodes(("float64", [2], -1)), "arrays.npy": FLAT}, "start at 0"),
    "offset of no kind": ({"model.json": nodes(("float64", [3], False)), "arrays.npy": FLAT}, "start at 0"),
    "left over": ({"model.json": nodes(("float64", [2], 0)), "arrays.npy": FLAT}, "belong to no array"),
    "values in the text": ({"model.json": document(array()).encode(), "arrays.npy": blob([])}, "start at 0"),
    "bad truth": ({"model.json": nodes(("bool", [8], 0)), "arrays.npy": blob([1.0])}, "neither 0 nor 1"),
    "object array": ({"model.json": nodes(("object", [3], 0)), "arrays.npy": FLAT}, "type 'object'"),
    "pickled arrays": ({"model.json": nodes(), "arrays.npy": pickle.dumps([1])}, "not one vector"),
    "cut arrays": ({"model.json": nodes(("float64", [3], 0)), "arrays.npy": FLAT[:-3]}, "not one vector"),
    "long arrays": ({"model.json": nodes(("float64", [3], 0)), "arrays.npy": FLAT + bytes(8)}, "not one vector"),
    "float32 arrays": (
        {"model.json": nodes(("float64", [3], 0)), "arrays.npy": FLAT.replace(b"<f8", b"<f4")},
        "not one vector",
    ),
    "no arrays": ({"model.json": nodes(), "arrays.npy": b""}, "not one vector"),
    "latin text": ({"model.json": b"\xe9", "arrays.npy": blob([])}, "utf-8"),
    "no text": ({"model.json": b"", "arrays.npy": blob([])}, "no valid JSON"),
}


@pytest.mark.parametrize(("members", "words"), HOSTILE_ZIPS.values(), ids=HOSTILE_ZIPS)
def test_a_hostile_zip_is_refused(tmp_path: Path, members: dict[str, bytes], words: str) -> None:
    path = zipped(tmp_path / "hostile.suffice", members)
    with pytest.raises(FileFormatError, match=rf"(?s)hostile\.suffice.*{words}"):
        storage.load(path)
    assert peak_while(lambda: storage.load(path)) < 5_000_000


def test_a_zip_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    members = {"model.json": nodes(("float64", [2**23], 0)), "arrays.npy": blob(np.zeros(2**23))}
    path = zipped(tmp_path / "bomb.suffice", members, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 200_000
    with pytest.raises(FileFormatError, match="is compressed"):
        storage.load(path)
    assert peak_while(lambda: storage.load(path)) < 1_000_000


@pytest.mark.parametrize("claim", [2**20, 2**31, 2**32 - 2])
def test_a_zip_that_claims_more_than_it_holds_is_refused(tmp_path: Path, claim: int) -> None:
    path = zipped(tmp_path / "liar.suffice", {"model.json": nodes(("float64", [3], 0)), "arrays.npy": FLAT})
    honest = struct.pack("<LL", len(FLAT), len(FLAT))
    path.write_bytes(path.read_bytes().replace(honest, struct.pack("<LL", claim, claim)))
    with pytest.raises(FileFormatError, match="larger than the file"):
        storage.load(path)
    assert peak_while(lambda: storage.load(path)) < 1_000_000


# --------------------------------------------------------------------------------------------------------------------
# Fuzzing
# --------------------------------------------------------------------------------------------------------------------

VICTIM = {
    "domain": Domain([Variable.discrete("a", ["no", 1, (True, b"x")]), Variable("x", "real")]),
    ("t", 1): np.array([[0.5, -0.0], [1e-300, 7.0]]),
    "n": [1, 2.5, None, float("inf"), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), np.arange(3, dtype=np.int8)],
}


def survives(path: Path) -> Any:
    """What a damaged file gives: a tree, or None for the one error that is allowed."""
    try:
        return storage.load(path)
    except FileFormatError:
        return None


def damaged(content: bytes) -> Iterator[bytes]:
    """Damage at every place, of a kind that changes from place to place: a cut, three changed bytes, a lost byte."""
    for place, byte in enumerate(content):
        before, after = content[:place], content[place + 1 :]
        kinds = [before, *(before + bytes([byte ^ change]) + after for change in (0x01, 0x80, 0xFF)), before + after]
        yield kinds[place % len(kinds)]


@pytest.mark.parametrize("ending", storage.ENDINGS)
def test_damage_gives_the_one_error_or_a_valid_tree(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"victim{ending}"
    storage.save(path, VICTIM)
    whole = path.read_bytes()
    trees = []
    tracemalloc.start()
    try:
        for content in damaged(whole):
            path.write_bytes(content)
            trees.append(survives(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    accepted = [tree for tree in trees if tree is not None]
    assert 0 < len(accepted) < len(whole) / 2
    for tree in accepted:
        # What was accepted is a tree like any other: it can be saved and is then read back the same.
        assert identical(storage.loads(storage.dumps(tree)), tree)
        # The zip has a checksum over text and values, so nothing that differs is ever accepted.
        assert ending == ".json" or identical(tree, VICTIM)


@settings(max_examples=150)
@given(data=st.data())
def test_random_edits_of_a_text_give_the_one_error_or_a_valid_tree(data: st.DataObject) -> None:
    pieces = st.sampled_from(
        [
            '{"$": "tuple", "items": [',
            "]}",
            '"$"',
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "null",
            "1e999",
            "-1",
            '"items"',
            '"object"',
        ]
    )
    text = storage.dumps(VICTIM)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = data.draw(st.integers(start, min(len(text), start + 30)))
        text = text[:start] + data.draw(pieces | st.text(max_size=5)) + text[stop:]
    try:
        tree = storage.loads(text)
    except FileFormatError:
        return
    assert identical(storage.loads(storage.dumps(tree)), tree)
