"""Which way a model is asked and learned: graphs by structures, the others by ``--model``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from suffice.cli.building import Wish
from suffice.cli.ways import Form, Way
from suffice.errors import NotFittedError

#: Class of a model -> module and class of its way.
_WAYS = {
    "BayesianNetwork": ("graphs", "GraphWay"),
    "MarkovNetwork": ("graphs", "GraphWay"),
    "GaussianGraph": ("graphs", "GraphWay"),
    "GLM": ("regressions", "RegressionWay"),
    "MarkovChain": ("chains", "ChainWay"),
    "HiddenMarkovModel": ("hidden_chains", "HiddenChainWay"),
    "ChainCRF": ("tagging", "TaggingWay"),
}
_FITS = {"glm": "regressions", "chain": "chains", "hmm": "hidden_chains", "crf": "tagging"}


def way_of(model: Any) -> Way:
    """How this model is asked."""
    module, name = _WAYS.get(type(model).__name__, ("ways", "Way"))
    found: Way = getattr(importlib.import_module(f"suffice.cli.{module}"), name)(model)
    return found


def fit_other(files: Sequence[str], wish: Wish, form: Form) -> Any:
    """A fitted model that has no graph."""
    assert wish.kind is not None
    wish.check(wish.kind)
    return importlib.import_module(f"suffice.cli.{_FITS[wish.kind]}").fit(list(files), wish, form)


def description(model: Any, *, for_programs: bool = False) -> dict[str, Any]:
    """What `show` tells: kind, structure, parameters (as text, or as data for programs), report."""
    import suffice as sf

    found: dict[str, Any] = {"model": type(model).__name__}
    if isinstance(model, sf.Summary):
        asked = [str(statistic) for statistic in model.answers]
        shown = asked if for_programs else ", ".join(asked)
        return found | {"rows": model.rows, "weight": model.weight, "statistics": shown}
    way = way_of(model)
    found |= way.structure(for_programs=for_programs)
    size = _size(model)
    if size is not None:
        found |= {"n_params": size, "parameters": way.figures() if for_programs else way.parameters()}
    notes = tuple(getattr(model, "notes_", ()))
    if notes:
        found["notes"] = notes if for_programs else "; ".join(map(str, notes))
    with suppress(NotFittedError):
        found["report"] = model.report_
    return found


def _size(model: Any) -> int | None:
    """The number of parameters; None where there are none yet."""
    try:
        found = model.n_params_
    except (AttributeError, NotImplementedError):
        return None
    return None if found is None else int(found)
