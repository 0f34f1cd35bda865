"""What is fuzzed, and what must hold: a file is refused by an error of the library or gives a model that works; rows of
any kind are refused by such an error or fitted, without a word of another library.

A `Target` makes damaged inputs from a seed and checks one. `tests/fuzz/test_fuzzing.py` runs a fixed number of each
with every input that was ever found wrong (`corpus/`); `tools/fuzz_everything.py` runs for as long as it is given.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import suffice as sf
from fuzz.mutation import mutate_bytes, mutate_text, mutate_tree
from fuzz.rows import any_rows
from fuzz.zoo import ZOO
from suffice import storage

CORPUS = Path(__file__).parent / "corpus"
#: A fit of damaged rows may end anywhere; whether it has converged is not the question here.
QUIET = (sf.SufficeWarning,)


class FailedError(Exception):
    """An input for which the library said nothing, or something foreign."""


@dataclass(frozen=True)
class Target:
    """A kind of input: how one is made, what its file is called, and what must hold of it."""

    make: Callable[[random.Random], bytes]
    check: Callable[[bytes], None]
    ending: str


def save(name: str, ending: str, data: bytes) -> Path:
    """Keep an input that was found wrong."""
    path = CORPUS / name / f"{hashlib.sha256(data).hexdigest()[:12]}{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def saved(name: str) -> Iterator[Path]:
    """The inputs that were kept for a target."""
    folder = CORPUS / name
    yield from sorted(folder.iterdir()) if folder.is_dir() else ()


# --------------------------------------------------------------------------------------------------------------------
# Files
# --------------------------------------------------------------------------------------------------------------------


def _read(data: bytes, ending: str) -> Any:
    """The object of a file, None where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"f{ending}"
        path.write_bytes(data)
        try:
            return sf.read(path)
        except sf.FileFormatError:
            return None
        except Exception as error:
            raise FailedError(f"reading: {type(error).__name__}: {error}") from error


def _use(model: Any, asks: Any) -> None:
    """Ask what models of the kind answer; refusals are answers."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for ask in asks:
            try:
                ask(model)
            except (sf.SufficeError, NotImplementedError):
                continue
            except Exception as error:
                raise FailedError(f"using: {type(error).__name__}: {error}") from error


def _network(ending: str) -> Target:
    """Files of tables: every node has a table, and the law can be asked."""
    plain = ending.removesuffix(".gz")
    seeds = [path.read_bytes() for path in sorted((CORPUS / "seeds").glob(f"*{plain}"))]
    assert seeds, ending

    def make(chance: random.Random) -> bytes:
        seed = chance.choice(seeds)
        if chance.random() < 0.5:
            seed = mutate_text(seed.decode("utf-8"), chance).encode("utf-8", "surrogatepass")
        else:
            seed = mutate_bytes(seed, chance)
        if ending == plain:
            return seed
        packed = gzip.compress(seed, mtime=0)
        return mutate_bytes(packed, chance) if chance.random() < 0.5 else packed

    def check(data: bytes) -> None:
        model = _read(data, ending)
        if model is not None:
            _use(model, _asks_of_file(model))

    return Target(make, check, ending)


def _asks_of_file(model: Any) -> tuple[Callable[[Any], Any], ...]:
    if isinstance(model, sf.BayesianNetwork):
        return repr, lambda net: [net.table(name) for name in net.nodes], lambda net: net.sample(2, random_state=0)
    if isinstance(model, sf.MarkovChain):
        return repr, lambda chain: chain.score([["a", "b"]])
    return (repr,)


@cache
def _texts() -> dict[str, str]:
    """The zoo as JSON texts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: storage.dumps(animal.make()) for name, animal in ZOO.items()}


def _native(ending: str) -> Target:
    """Models of every kind, in the library's own files."""

    def make(chance: random.Random) -> bytes:
        text = _texts()[chance.choice(list(ZOO))]
        way = chance.random()
        if way < 0.8:
            text = mutate_tree(text, chance)
        elif way < 0.9:
            text = mutate_text(text, chance)
        data = text.encode("utf-8", "surrogatepass")
        if ending == ".suffice":
            data = _zipped(data)
        return mutate_bytes(data, chance) if way >= 0.9 else data

    def check(data: bytes) -> None:
        model = _read(data, ending)
        for kind in () if model is None else _kinds(type(model).__name__):
            _use(model, ZOO[kind].asks)

    return Target(make, check, ending)


@cache
def _kinds(name: str) -> tuple[str, ...]:
    """The animals of a class."""
    return tuple(kind for kind, text in _texts().items() if json.loads(text)["content"]["class"] == name)[:1]


def _zipped(text: bytes) -> bytes:
    """A `.suffice` file with this text, its arrays moved to where the format has them, as far as the text allows."""
    values: list[float] = []

    def moved(node: Any) -> Any:
        if isinstance(node, dict):
            if node.get("$") == "array" and _is_plain(node.get("values")):
                place = len(values)
                values.extend(map(float, node["values"]))
                return {"$": "array", "dtype": "float64", "shape": node.get("shape"), "offset": place}
            return {key: moved(part) for key, part in node.items()}
        return [moved(part) for part in node] if isinstance(node, list) else node

    try:
        text = json.dumps(moved(json.loads(text))).encode("utf-8")
    except (ValueError, RecursionError, UnicodeError):
        pass  # Then the text is damaged already.
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as archive:
        archive.writestr(zipfile.ZipInfo("model.json"), text)
        packed = storage.files._npy_header(len(values)) + np.array(values, dtype="<f8").tobytes()
        archive.writestr(zipfile.ZipInfo("arrays.npy"), packed)
    return found.getvalue()


def _is_plain(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(v, int | float) and abs(v) < 1e300 for v in values)


# --------------------------------------------------------------------------------------------------------------------
# Rows
# --------------------------------------------------------------------------------------------------------------------


def _check_rows(data: bytes) -> None:
    """Fit the model that a seed chooses to the rows that it makes, with every warning as an error."""
    chance = random.Random(data.decode("ascii"))
    name, fit = any_rows(chance)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in QUIET:
            warnings.simplefilter("ignore", kind)
        try:
            model = fit()
            repr(model)
            str(model.report_)
        except (sf.SufficeError, FileNotFoundError):
            return
        except Exception as error:
            raise FailedError(f"{name}: {type(error).__name__}: {error}") from error


ROWS = Target(lambda chance: f"{chance.getrandbits(64):016x}".encode(), _check_rows, ".seed")

ENDINGS = (".bif", ".xmlbif", ".net", ".uai", ".dsl", ".xdsl", ".arpa")
TARGETS: dict[str, Target] = {
    **{ending[1:]: _network(ending) for ending in ENDINGS},
    **{f"{ending[1:]}-gz": _network(f"{ending}.gz") for ending in ENDINGS},
    "arcs": _network(".json"),
    "arcs-gz": _network(".json.gz"),
    "native": _native(".json"),
    "zipped": _native(".suffice"),
    "rows": ROWS,
}
