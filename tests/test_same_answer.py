"""Fast ways are only fast: NumPy or compiled loops, one thread or two, one table or shards of it, a report that is made
at once or when it is read, give the same parameters, likelihoods and certificates.

Fits that iterate take the same steps up to rounding and end after the same number of them, so that they are compared
like closed forms; `table_fits.EXACT` allows for sums in another order.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from fuzz.zoo import ZOO
from suffice.kernels import choice
from table_fits import READERS, TABLES, same

FITTED = [name for name, animal in ZOO.items() if not name.startswith("summary")]


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


def _spins(solver: str) -> Any:
    model = sf.MarkovNetwork.ising(SQUARE, max_iter=30, solver=solver, random_state=0, sampling=FEW)
    return model.fit(SPINS)


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
    **{solver: partial(_spins, solver) for solver in ("sml", "cd", "pseudolikelihood", "loopy-bp")},
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
