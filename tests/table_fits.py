"""Fits of small tables by every model that reads rows, and the comparison of two fits, exact but for rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import suffice as sf
from fuzz.zoo import COUNTS, EDGES, GAPS, MIXED, REALS, ROWS

EXACT = 1e-12


# -- what is compared --------------------------------------------------------------------------------------------------


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All numbers and words in plain data, by their place."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from numbers(part, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for at, part in enumerate(value):
            yield from numbers(part, f"{path}/{at}")
    elif isinstance(value, np.ndarray):
        yield path, value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from numbers(getattr(value, field.name), f"{path}/{field.name}")
    elif hasattr(value, "parameters_"):
        yield from numbers(value.parameters_, path)
    elif isinstance(value, bool | int | float | str | np.number | None):
        yield path, value
    else:
        yield from numbers(value.to_dict(), path)


def parameters(model: Any) -> dict[str, Any]:
    """What a file holds of the fit, without what a GLM keeps of rows in memory alone, for its plots."""
    plain = model.to_dict()
    return {name: value for name, value in (plain["fitted"] or plain["options"]).items() if name != "moments"}


def same(one: Any, other: Any) -> None:
    """Two fitted models agree in their parameters and in what their reports say of the fit."""
    mine, theirs = (dict(numbers(parameters(model))) for model in (one, other))
    assert mine
    assert mine.keys() == theirs.keys()
    for path, value in mine.items():
        if path.endswith("/report/passes"):
            # Compiled loops bound means by the sizes of columns, without a look at rows; `same_receipts` counts none.
            continue
        if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            size = float(np.abs(np.where(np.isfinite(value), value, 0.0)).max(initial=0.0))
            np.testing.assert_allclose(theirs[path], value, rtol=EXACT, atol=EXACT * size, err_msg=path)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(theirs[path], value, err_msg=path)
        else:
            assert theirs[path] == value, path
    if "report_" not in one.__dict__ and "_to_report" not in one.__dict__:
        return
    same_receipts(one.report_, other.report_)


def same_receipts(a: sf.Report, b: sf.Report) -> None:
    """Two reports say the same of rows and fit."""
    same_figures(a, b)
    assert (a.converged, a.iterations, a.stop_reason) == (b.converged, b.iterations, b.stop_reason)
    assert (a.rows, a.method, a.warnings) == (b.rows, b.method, b.warnings)
    c, d = a.certificate, b.certificate
    assert (c.directions, c.bound, c.exact, c.formula) == (d.directions, d.bound, d.exact, d.formula)
    assert c.moment_gap == pytest.approx(d.moment_gap, rel=1e-6, abs=1e-10)
    assert (c.value_gap is None) == (d.value_gap is None)


def same_figures(a: sf.Report, b: sf.Report) -> None:
    """Two reports give the same likelihood, objective, parameters and existence."""
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=EXACT, abs=EXACT * a.rows)
    assert a.objective == pytest.approx(b.objective, rel=EXACT, abs=EXACT * a.rows)
    assert (a.n_params, a.weight, a.certificate.exists) == (b.n_params, b.weight, b.certificate.exists)


# -- tables ------------------------------------------------------------------------------------------------------------

#: Whole rows: so many times those of the zoo, that shards have several batches.
TIMES = 40
_OF_ZOO: dict[str, Any] = {"rows": ROWS, "gaps": GAPS, "reals": REALS, "mixed": MIXED, "counts": COUNTS}
TABLES: dict[str, Any] = {
    name: {column: list(values) * TIMES for column, values in rows.items()} for name, rows in _OF_ZOO.items()
}
TABLES["reals"] = {
    column: (np.asarray(values) + 0.1 * np.random.default_rng(at).normal(size=len(values))).tolist()
    for at, (column, values) in enumerate(TABLES["reals"].items())
}
BITS = {name: [int(value in ("x", "p", 1)) for value in column] for name, column in TABLES["rows"].items()}
TABLES["bits"] = BITS

#: How a model reads a table, and which.
READERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "normal": ("reals", lambda data, weight=None: sf.Normal().fit(data, sample_weight=weight, columns=["u"])),
    "gamma": ("reals", lambda data, weight=None: sf.Gamma().fit(data, sample_weight=weight, columns=["w"])),
    "poisson": ("counts", lambda data, weight=None: sf.Poisson().fit(data, sample_weight=weight, columns=["n"])),
    "categorical": ("rows", lambda data, weight=None: sf.Categorical().fit(data, sample_weight=weight, columns=["a"])),
    "multivariate-normal": ("reals", lambda data, weight=None: sf.MultivariateNormal().fit(data, sample_weight=weight)),
    "network": ("rows", lambda data, weight=None: sf.BayesianNetwork(EDGES).fit(data, sample_weight=weight)),
    "network-prior": (
        "rows",
        lambda data, weight=None: sf.BayesianNetwork(EDGES, prior="bdeu").fit(data, sample_weight=weight),
    ),
    "network-gaps": ("gaps", lambda data, weight=None: sf.BayesianNetwork(EDGES).fit(data, sample_weight=weight)),
    "network-linear": (
        "reals",
        lambda data, weight=None: sf.BayesianNetwork([("u", "v"), ("u", "w")]).fit(data, sample_weight=weight),
    ),
    "network-mixed": (
        "mixed",
        lambda data, weight=None: sf.BayesianNetwork([("a", "v"), ("u", "v")]).fit(data, sample_weight=weight),
    ),
    "network-noisy-or": (
        "bits",
        lambda data, weight=None: sf.BayesianNetwork(
            [("a", "c"), ("b", "c")], nodes={"c": sf.NoisyOr()}, prior=1.0
        ).fit(data, sample_weight=weight),
    ),
    "network-noisy-max": (
        "bits",
        lambda data, weight=None: sf.BayesianNetwork(
            [("a", "c"), ("b", "c")], nodes={"c": sf.NoisyMax()}, prior=1.0
        ).fit(data, sample_weight=weight),
    ),
    "network-constrained": (
        "bits",
        lambda data, weight=None: sf.BayesianNetwork(
            [("a", "c"), ("b", "c")], nodes={"c": sf.ConstrainedTable({"a": "+"})}, prior=1.0
        ).fit(data, sample_weight=weight),
    ),
    "network-glm": (
        "counts",
        lambda data, weight=None: sf.BayesianNetwork([("u", "n")], nodes={"n": sf.GLM(family=sf.Poisson())}).fit(
            data, sample_weight=weight
        ),
    ),
    "markov": (
        "rows",
        lambda data, weight=None: sf.MarkovNetwork([*EDGES, ("c", "a")]).fit(data, sample_weight=weight),
    ),
    "markov-hidden": (
        "rows",
        lambda data, weight=None: sf.MarkovNetwork(
            [("h", "a"), ("h", "b")], hidden={"h": 2}, max_iter=3, tolerance=1.0
        ).fit(data, sample_weight=weight),
    ),
    "gaussian-graph": (
        "reals",
        lambda data, weight=None: sf.GaussianGraph([("u", "v"), ("v", "w")]).fit(data, sample_weight=weight),
    ),
    "glm-gaussian": (
        "reals",
        lambda data, weight=None: sf.GLM("gaussian").fit(data, sample_weight=weight, y="v", columns=["u", "w"]),
    ),
    "glm-poisson": (
        "counts",
        lambda data, weight=None: sf.GLM("poisson").fit(data, sample_weight=weight, y="n", columns=["u"]),
    ),
}
