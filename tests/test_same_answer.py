"""Fast ways are only fast: NumPy or compiled loops, one thread or two, one table or shards of it, a report that is made
at once or when it is read, give the same parameters, likelihoods and certificates.

Fits that iterate take the same steps up to rounding and end after the same number of them, so that they are compared
like closed forms. `EXACT` allows for sums in another order.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from fuzz.zoo import COUNTS, EDGES, GAPS, MIXED, REALS, ROWS, ZOO
from suffice.kernels import choice

EXACT = 1e-12
FITTED = [name for name, animal in ZOO.items() if not name.startswith("summary")]


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


def parameters(model: Any) -> dict[str, Any]:
    """What a file holds of the fit, without what a GLM keeps of rows in memory alone, for its plots."""
    plain = model.to_plain()
    return {name: value for name, value in (plain["fitted"] or plain["options"]).items() if name != "moments"}


def same(one: Any, other: Any) -> None:
    """Two fitted models agree in their parameters and in what their reports say of the fit."""
    mine, theirs = (dict(numbers(parameters(model))) for model in (one, other))
    assert mine
    assert mine.keys() == theirs.keys()
    for path, value in mine.items():
        if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
            size = float(np.abs(np.where(np.isfinite(value), value, 0.0)).max(initial=0.0))
            np.testing.assert_allclose(theirs[path], value, rtol=EXACT, atol=EXACT * size, err_msg=path)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(theirs[path], value, err_msg=path)
        else:
            assert theirs[path] == value, path
    if "report_" not in one.__dict__ and "_to_report" not in one.__dict__:
        return
    a, b = one.report_, other.report_
    assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=EXACT, abs=EXACT * a.rows)
    assert a.objective == pytest.approx(b.objective, rel=EXACT, abs=EXACT * a.rows)
    assert (a.converged, a.iterations, a.stop_reason, a.n_params) == (
        b.converged,
        b.iterations,
        b.stop_reason,
        b.n_params,
    )
    assert (a.rows, a.weight, a.method, a.warnings) == (b.rows, b.weight, b.method, b.warnings)
    c, d = a.certificate, b.certificate
    assert (c.exists, c.directions, c.bound, c.exact, c.formula) == (
        d.exists,
        d.directions,
        d.bound,
        d.exact,
        d.formula,
    )
    assert c.moment_gap == pytest.approx(d.moment_gap, rel=1e-6, abs=1e-10)
    assert (c.value_gap is None) == (d.value_gap is None)


# -- loops and threads -------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
MANY = {name: RNG.integers(0, 3, 6_000) for name in "abcd"}
MANY["d"] = np.where(RNG.random(6_000) < 0.7, MANY["a"], MANY["d"])
HOLES = {name: [None if hole else int(x) for x, hole in zip(column, RNG.random(6_000) < 0.1, strict=True)]
         for name, column in MANY.items()}  # fmt: skip
LONG = {name: RNG.normal(size=20_000) for name in "uvw"}
LONG["v"] = LONG["v"] + LONG["u"]
THIN = {"u": LONG["u"][:3_000], "v": [None if hole else float(x) for x, hole in zip(LONG["v"][:3_000], RNG.random(3_000) < 0.1, strict=True)]}  # fmt: skip  # noqa: E501
SERIES = [RNG.normal(size=60) + 3.0 * (RNG.random(60) < 0.5) for _ in range(120)]
LETTERS = ["".join(RNG.choice(list("abcd"), 80)) for _ in range(120)]
TAGGED = [RNG.normal(size=(40, 3)) for _ in range(100)], [RNG.choice(list("xyz"), 40).tolist() for _ in range(100)]
GRIDS = (
    [
        sf.GraphExample(RNG.normal(size=(6, 2)), [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)])
        for _ in range(80)
    ],
    [RNG.choice(list("st"), 6).tolist() for _ in range(80)],
)
YES = (RNG.random(20_000) < 1.0 / (1.0 + np.exp(-LONG["u"]))).astype(int)
FEW = sf.GibbsSampling(chains=16, burn_in=10, draws=40)
SQUARE = sf.MarkovNetwork.grid_edges(3, 3)
SPINS = {node: RNG.choice([-1, 1], 2_000) for node in {node for edge in SQUARE for node in edge}}
CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]

#: Enough rows that loops are cut into pieces, which threads share; iterative fits take a few steps.
LARGE: dict[str, Callable[[], Any]] = {
    "normal": lambda: sf.Normal().fit(LONG["u"]),
    "multivariate-normal": lambda: sf.MultivariateNormal().fit(LONG),
    "network": lambda: sf.BayesianNetwork([("a", "b"), ("a", "d"), ("c", "d")]).fit(MANY),
    "network-linear": lambda: sf.BayesianNetwork([("u", "v"), ("w", "v")]).fit(LONG),
    "network-gaps": lambda: sf.BayesianNetwork([("a", "b"), ("a", "d")], max_iter=4).fit(HOLES),
    "network-squarem": lambda: sf.BayesianNetwork([("a", "d")], max_iter=4, acceleration="squarem").fit(HOLES),
    "network-real-gaps": lambda: sf.BayesianNetwork([("u", "v")], max_iter=4).fit(THIN),
    "network-hidden": lambda: sf.BayesianNetwork(
        [("h", "a"), ("h", "d")], hidden={"h": [0, 1]}, max_iter=4, random_state=0
    ).fit({"a": MANY["a"], "d": MANY["d"]}),
    "markov-ipf": lambda: sf.MarkovNetwork(CYCLE, max_iter=4, solver="ipf").fit(MANY),
    "markov-lbfgs": lambda: sf.MarkovNetwork(CYCLE, max_iter=4, solver="lbfgs").fit(MANY),
    "markov-gis": lambda: sf.MarkovNetwork(CYCLE, max_iter=4, solver="gis").fit(MANY),
    "markov-newton": lambda: sf.MarkovNetwork(CYCLE, max_iter=4, solver="newton", prior=sf.Normal(variance=1.0)).fit(
        MANY
    ),
    "markov-laplace": lambda: sf.MarkovNetwork(CYCLE, max_iter=4, prior=sf.Laplace(1.0)).fit(MANY),
    "markov-gaps": lambda: sf.MarkovNetwork(CYCLE, max_iter=3).fit(HOLES),
    "ising": lambda: sf.MarkovNetwork.ising(SQUARE, max_iter=4, solver="cg").fit(SPINS),
    **{
        solver: lambda solver=solver: sf.MarkovNetwork.ising(
            SQUARE, max_iter=30, solver=solver, random_state=0, sampling=FEW
        ).fit(SPINS)
        for solver in ("sml", "cd", "pseudolikelihood", "loopy-bp")
    },
    "gaussian-graph": lambda: sf.GaussianGraph([("u", "v"), ("v", "w")]).fit(LONG),
    "chain": lambda: sf.MarkovChain(2).fit(LETTERS),
    "chain-interpolation": lambda: sf.MarkovChain(2, smoothing=sf.Interpolation(), max_iter=5).fit(LETTERS),
    "hmm-categorical": lambda: sf.HiddenMarkovModel(3, sf.Categorical(), max_iter=4, random_state=0).fit(LETTERS),
    "hmm-normal": lambda: sf.HiddenMarkovModel(2, sf.Normal(), max_iter=4, random_state=0).fit(SERIES),
    "hmm-squarem": lambda: sf.HiddenMarkovModel(2, sf.Normal(), max_iter=3, random_state=0, acceleration="squarem").fit(
        SERIES
    ),
    "crf": lambda: sf.ChainCRF(sf.Normal(variance=1.0), max_iter=4).fit(*TAGGED),
    "crf-laplace": lambda: sf.ChainCRF(sf.Laplace(1.0), max_iter=4).fit(*TAGGED),
    "crf-sgd": lambda: sf.ChainCRF(sf.Normal(variance=1.0), solver="sgd", max_iter=2, random_state=0).fit(*TAGGED),
    "graph-crf": lambda: sf.GraphCRF(sf.Normal(variance=1.0), max_iter=4).fit(*GRIDS),
    "graph-crf-loopy": lambda: sf.GraphCRF(sf.Normal(variance=1.0), max_iter=4, inference="loopy").fit(*GRIDS),
    "glm-binomial": lambda: sf.GLM("binomial").fit({"u": LONG["u"], "w": LONG["w"]}, YES),
    "glm-lbfgs": lambda: sf.GLM("binomial", solver="lbfgs", max_iter=4).fit({"u": LONG["u"], "w": LONG["w"]}, YES),
    "glm-gaussian": lambda: sf.GLM("gaussian").fit({"u": LONG["u"], "w": LONG["w"]}, LONG["v"]),
    "glm-multinomial": lambda: sf.GLM("multinomial").fit({"u": LONG["u"][:6_000]}, MANY["a"]),
    "glm-ordinal": lambda: sf.GLM("ordinal").fit({"u": LONG["u"][:6_000]}, MANY["a"]),
}
MAKERS: dict[str, Callable[[], Any]] = {
    **{name: ZOO[name].make for name in FITTED},
    **{f"large {name}": make for name, make in LARGE.items()},
}


def made(name: str) -> Any:
    """The model, with its report where it has one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.SufficeWarning)  # Fits that take a few steps say that they have not ended.
        model = MAKERS[name]()
        getattr(model, "report_", None)
    return model


@pytest.mark.parametrize("name", MAKERS)
def test_numpy_and_compiled_loops(name: str) -> None:
    with choice.force("numpy"):
        plain = made(name)
    with choice.force("compiled"):
        same(plain, made(name))


@pytest.mark.parametrize("name", MAKERS)
def test_one_thread_and_two(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with choice.force("compiled"):
        monkeypatch.setenv("SUFFICE_THREADS", "1")
        alone = made(name)
        monkeypatch.setenv("SUFFICE_THREADS", "2")
        same(alone, made(name))


# -- reports -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FITTED)
def test_a_report_that_is_read_at_once_or_later(name: str) -> None:
    at_once, later = made(name), ZOO[name].make()
    if not hasattr(at_once, "report_"):
        return
    first = at_once.report_
    sent = pickle.loads(pickle.dumps(ZOO[name].make()))
    for ask in ZOO[name].asks:
        ask(later)
    for model in (later, sent, pickle.loads(pickle.dumps(later))):
        assert model.report_ == first
        same(at_once, model)


# -- shards ------------------------------------------------------------------------------------------------------------

#: Whole rows: so many times those of the zoo, that shards have several batches.
TIMES = 40
TABLES: dict[str, Any] = {
    name: {column: list(values) * TIMES for column, values in rows.items()}
    for name, rows in {"rows": ROWS, "gaps": GAPS, "reals": REALS, "mixed": MIXED, "counts": COUNTS}.items()
}
TABLES["reals"] = {
    column: (np.asarray(values) + 0.1 * np.random.default_rng(at).normal(size=len(values))).tolist()
    for at, (column, values) in enumerate(TABLES["reals"].items())
}
BITS = {name: [int(value in ("x", "p", 1)) for value in column] for name, column in TABLES["rows"].items()}
TABLES["bits"] = BITS

#: How a model reads a table, and which.
READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "normal": ("reals", lambda data: sf.Normal().fit(data, columns=["u"])),
    "gamma": ("reals", lambda data: sf.Gamma().fit(data, columns=["w"])),
    "poisson": ("counts", lambda data: sf.Poisson().fit(data, columns=["n"])),
    "categorical": ("rows", lambda data: sf.Categorical().fit(data, columns=["a"])),
    "multivariate-normal": ("reals", lambda data: sf.MultivariateNormal().fit(data)),
    "network": ("rows", lambda data: sf.BayesianNetwork(EDGES).fit(data)),
    "network-prior": ("rows", lambda data: sf.BayesianNetwork(EDGES, prior="bdeu").fit(data)),
    "network-gaps": ("gaps", lambda data: sf.BayesianNetwork(EDGES).fit(data)),
    "network-linear": ("reals", lambda data: sf.BayesianNetwork([("u", "v"), ("u", "w")]).fit(data)),
    "network-mixed": ("mixed", lambda data: sf.BayesianNetwork([("a", "v"), ("u", "v")]).fit(data)),
    "network-noisy-or": (
        "bits",
        lambda data: sf.BayesianNetwork([("a", "c"), ("b", "c")], nodes={"c": sf.NoisyOr()}, prior=1.0).fit(data),
    ),
    "network-glm": (
        "counts",
        lambda data: sf.BayesianNetwork([("u", "n")], nodes={"n": sf.GLM(family=sf.Poisson())}).fit(data),
    ),
    "markov": ("rows", lambda data: sf.MarkovNetwork([*EDGES, ("c", "a")]).fit(data)),
    "markov-hidden": (
        "rows",
        lambda data: sf.MarkovNetwork([("h", "a"), ("h", "b")], hidden={"h": 2}, max_iter=3, tolerance=1.0).fit(data),
    ),
    "gaussian-graph": ("reals", lambda data: sf.GaussianGraph([("u", "v"), ("v", "w")]).fit(data)),
    "glm-gaussian": ("reals", lambda data: sf.GLM("gaussian").fit(data, y="v", columns=["u", "w"])),
    "glm-poisson": ("counts", lambda data: sf.GLM("poisson").fit(data, y="n", columns=["u"])),
}


def _parquet(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_parquet(folder / "rows.parquet", row_group_size=50)
    return folder / "rows.parquet"


def _csv(frame: pd.DataFrame, folder: Path) -> Any:
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def _files(frame: pd.DataFrame, folder: Path) -> Any:
    edges = [0, 7, 100, 101, len(frame)]
    for number, (begin, end) in enumerate(pairwise(edges)):
        frame[begin:end].to_parquet(folder / f"part{number}.parquet")
    return [str(folder / f"part{number}.parquet") for number in range(len(edges) - 1)]


SHARDS = {"Parquet": _parquet, "CSV": _csv, "files": _files}


@pytest.mark.parametrize("form", SHARDS)
@pytest.mark.parametrize("name", READERS)
def test_one_table_and_shards_of_it(name: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, read = READERS[name]
    frame = pd.DataFrame(TABLES[table])
    whole = read(frame)
    whole.report_  # noqa: B018
    monkeypatch.setattr("suffice.sources.stream.BATCH_ROWS", 64)
    monkeypatch.setattr("suffice.sources.csv.BLOCK_BYTES", 2048)
    data = SHARDS[form](frame, tmp_path)
    for threads in ("1", "2"):
        monkeypatch.setenv("SUFFICE_THREADS", threads)
        same(whole, read(data))
