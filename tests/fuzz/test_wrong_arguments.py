"""Methods and options of every kind of model, given what nobody should give: the errors are the library's.

What is wrong is put in the place of one argument at a time, beside others that fit. A path may raise an OSError, and a
function of the caller's own whatever it raises.
"""

import copy
import inspect
import math
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from fuzz import zoo

#: One of each kind of value that a person may give by mistake.
WRONG: tuple[Any, ...] = (
    *(None, "", "nosuch", b"x", -1, 2.5, math.nan, 10**25, True, object(), int, ["a", 1], [[1], [1, 2]]),
    *([], {}, [None], [[]], [math.nan], {"nosuch": [1, 2]}, {"a": object()}, {None: None}, ("a", "a")),
    *(np.array(5.0), np.zeros((0, 2)), np.zeros((2, 2, 2)), np.array([None, "x"], object), np.array([1j])),
)
KINDS = (
    *("normal", "normal-posterior", "multivariate-normal", "categorical", "poisson", "dirichlet", "wishart", "network"),
    *("network-mixed", "markov", "gaussian-graph", "chain", "hmm-categorical", "crf", "graph-crf", "glm-binomial"),
    *("dynamic", "dynamic-hidden"),
)
#: Metadata of scikit-learn, and what rebuilds a model from a file.
NOT_ASKED = {"from_dict", "member_class", "get_metadata_routing"}
#: What is tried further in: functions of the caller, and files.
OWN = {"callback", "path", "checkpoint"}
#: Values that fit, by the name of the argument.
FITTING = {
    "n": 2,
    "random_state": 0,
    "level": 0.9,
    "k": 2,
    "order": 2,
    "steps": 2,
    "length": 3,
    "chains": 4,
    "keep": 1.0,
}
DATA: dict[str, dict[str, Any]] = {
    "normal": {"data": zoo.REALS["u"], "x": zoo.REALS["u"]},
    "normal-posterior": {"data": zoo.REALS["u"], "x": zoo.REALS["u"]},
    "multivariate-normal": {"data": zoo.REALS, "x": zoo.REALS, "columns": ["u"]},
    "categorical": {"data": zoo.ROWS["a"], "x": zoo.ROWS["a"]},
    "poisson": {"data": zoo.COUNTS["n"], "x": zoo.COUNTS["n"]},
    "dirichlet": {"data": [[0.2, 0.8], [0.5, 0.5], [0.3, 0.7]], "x": [[0.2, 0.8]]},
    "network": {"data": zoo.ROWS, "target": "c", "node": "c", "variables": "c"},
    "network-mixed": {"data": zoo.MIXED, "target": "v", "node": "v", "variables": "a"},
    "markov": {"data": zoo.ROWS, "target": "c", "node": "c", "variables": "c", "clique": ("a", "b")},
    "gaussian-graph": {"data": zoo.REALS, "target": "u", "variables": "u"},
    "chain": {"data": zoo.WORDS, "sequences": zoo.WORDS, "rows": zoo.WORDS, "word": "a", "history": ["b"]},
    "dynamic": {"data": zoo.SLICES, "node": "a", "name": "a"},
    "dynamic-hidden": {"data": zoo.SLICES, "node": "state", "name": "a"},
    "hmm-categorical": {"sequences": zoo.WORDS, "rows": zoo.WORDS},
    "crf": {"X": zoo.TAGS[0], "y": zoo.TAGS[1]},
    "graph-crf": {"X": zoo.GRAPHS[0], "y": zoo.GRAPHS[1], "example": zoo.GRAPHS[0][0]},
    "glm-binomial": {"X": {**zoo.REALS, "c": zoo.ROWS["c"]}, "y": "c", "columns": ["u"]},
}


@cache
def model_of(kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zoo.ZOO[kind].make()


def arguments(function: Any) -> list[inspect.Parameter]:
    every = inspect.signature(function).parameters.values()
    return [each for each in every if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def methods(kind: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A method, one of its arguments, and what stands beside it."""
    model, fitting = model_of(kind), FITTING | DATA.get(kind, {})
    for name in dir(model):
        if name.startswith(("_", "set_")) or name in NOT_ASKED or not callable(method := getattr(model, name)):
            continue
        asked = arguments(method)
        beside = {each.name: fitting.get(each.name, "a") for each in asked if each.default is each.empty}
        # The number of refits is an option: two of them say as much about wrong arguments as a thousand.
        beside |= {
            each.name: fitting[each.name]
            for each in asked
            if each.name in ("y", "columns", "n") and each.name in fitting
        }
        for each in asked:
            if each.name not in OWN:
                yield name, each.name, beside


def refused_or_answered(say: str, call: Any) -> str:
    """What a call says that is none of the library's errors; empty where it answers or refuses."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            call()
    except (sf.SufficeError, OSError):
        pass
    except Exception as error:
        return f"{say}: {type(error).__name__}: {error}"
    return ""


def asked_with(kind: str, method: str, given: dict[str, Any]) -> Any:
    model = model_of(kind)
    changes = method in ("fit", "partial_fit", "unlearn")
    return getattr(copy.deepcopy(model) if changes else model, method)(**given)


@pytest.mark.parametrize("kind", KINDS)
def test_methods_refuse_wrong_arguments_by_errors_of_the_library(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    foreign = []
    for method, argument, beside in methods(kind):
        for wrong in WRONG:
            given = beside | {argument: wrong}
            say = f"{method}({argument}={wrong!r})"
            foreign.append(refused_or_answered(say, lambda m=method, g=given: asked_with(kind, m, g)))
    assert [found for found in foreign if found] == []


@pytest.mark.parametrize("kind", KINDS)
def test_options_refuse_wrong_values_by_errors_of_the_library(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = model_of(kind)
    options = model.get_params(deep=False)
    rows = {
        name: value for name, value in DATA.get(kind, {}).items() if name in ("data", "sequences", "X", "y", "columns")
    }

    def fitted(changed: dict[str, Any]) -> None:
        made = type(model)(**changed)
        repr(made)
        made.fit(**rows)

    foreign = []
    for option in options.keys() - OWN:
        for wrong in WRONG:
            short = {"max_iter": 2} if "max_iter" in options and option != "max_iter" else {}
            changed = options | short | {option: wrong}
            foreign.append(refused_or_answered(f"{option}={wrong!r}", lambda changed=changed: fitted(changed)))
    assert [found for found in foreign if found] == []
