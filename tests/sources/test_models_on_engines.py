"""Every model from every source: the parameters of the fit in memory, and no row in the process that asks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.conditional_field.evaluation import Evaluation
from suffice.sources.dask import DaskSource
from suffice.sources.partitions import Packed
from suffice.sources.spark import SparkSource

pytestmark = pytest.mark.filterwarnings("ignore")

ROWS, PARTS = 4000, 4
STEPS = {"group": "person", "order": "step"}
#: More variables than joint states are counted of.
BITS = [f"bit{number}" for number in range(14)]
SOURCES = ("parquet", "duckdb", "dask", "spark")


@dataclass(frozen=True)
class Case:
    """A model, what its fit is told, and its parameters."""

    model: Callable[[], Any]
    parameters: Callable[[Any], list[Any]]
    columns: list[str]
    options: dict[str, Any]
    #: Most bytes of an answer: far less than the rows take.
    most: int = 8000


def table() -> pd.DataFrame:
    """States, numbers, counts, and states with missing values; sequences of steps."""
    rng = np.random.default_rng(8)
    a = rng.integers(0, 3, ROWS)
    b = (a + (rng.random(ROWS) < 0.3)) % 3
    x = rng.normal(size=ROWS)
    y = 0.5 * x + rng.normal(size=ROWS)
    names = np.array(["u", "v", "w"])
    data = pd.DataFrame({"a": names[a], "b": names[b], "x": x, "y": y})
    data["c"] = np.where(rng.random(ROWS) < 0.5, data["b"], names[rng.integers(0, 3, ROWS)])
    data["success"] = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-x)), "yes", "no")
    data["visits"] = rng.poisson(np.exp(0.3 * y))
    data["gaps"] = data["b"].where(rng.random(ROWS) > 0.1, None)
    data["z"] = np.where(rng.random(ROWS) < 0.1, np.nan, x + rng.normal(size=ROWS))
    data["person"] = np.arange(ROWS) // 20
    data["step"] = np.arange(ROWS) % 20
    data["next"] = [[step + 1] if step < 19 else [] for step in data["step"].tolist()]
    data["positive"] = rng.gamma(2.0, size=ROWS)
    data["row"] = np.arange(ROWS)
    data["times"] = rng.integers(1, 4, ROWS).astype(float)
    data["exposure"] = np.exp(x / 5)
    data["features"] = [[f"a={state}", f"up={value > 0}"] for state, value in zip(data["a"], x, strict=True)]
    codes = rng.integers(0, 2, ROWS)
    for name in BITS:  # A chain of many binary columns.
        codes = np.where(rng.random(ROWS) < 0.3, 1 - codes, codes)
        data[name] = codes
    return data


def tables_of(*nodes: str) -> Callable[[Any], list[Any]]:
    return lambda model: [model.table(node).values for node in nodes]


def weights_of(*nodes: str) -> Callable[[Any], list[Any]]:
    return lambda model: [value for node in nodes for value in (model.node(node).weights_, model.node(node).variance_)]


def coefficients(model: Any) -> list[Any]:
    return [model.coefficients_, model.standard_errors_]


CASES: dict[str, Case] = {
    "normal distribution": Case(sf.Normal, lambda model: [model.mean_, model.variance_], ["x"], {"columns": ["x"]}),
    "gamma distribution": Case(
        sf.Gamma, lambda model: [model.natural_parameters_], ["positive"], {"columns": ["positive"]}
    ),
    "tables": Case(lambda: sf.BayesianNetwork([("a", "b"), ("b", "c")]), tables_of("a", "b", "c"), ["a", "b", "c"], {}),
    "linear-Gaussian": Case(lambda: sf.BayesianNetwork([("x", "y")]), weights_of("x", "y"), ["x", "y"], {}),
    "Markov network": Case(
        lambda: sf.MarkovNetwork([("a", "b"), ("b", "c"), ("a", "c")]),
        lambda model: [model.weights_],
        ["a", "b", "c"],
        {},
    ),
    "pseudo-likelihood": Case(
        lambda: sf.MarkovNetwork([("a", "b"), ("b", "c"), ("a", "c")], solver="pseudolikelihood", max_iter=6),
        lambda model: [model.weights_],
        ["a", "b", "c"],
        {},
    ),
    "stochastic maximum likelihood": Case(
        lambda: sf.MarkovNetwork([("a", "b"), ("b", "c"), ("a", "c")], solver="sml", max_iter=20, random_state=0),
        lambda model: [model.weights_],
        ["a", "b", "c"],
        {},
    ),
    "EM of a Markov network": Case(
        lambda: sf.MarkovNetwork([("a", "gaps"), ("gaps", "c"), ("a", "c")], max_iter=5),
        lambda model: [model.weights_],
        ["a", "gaps", "c"],
        {},
    ),
    "softmax regression": Case(
        lambda: sf.GLM("multinomial"), coefficients, ["x", "y", "b"], {"y": "b", "columns": ["x", "y"]}
    ),
    "partly known states": Case(
        lambda: sf.HiddenMarkovModel(["u", "v", "w"], sf.Categorical(), max_iter=5),
        lambda model: [model.transitions_],
        ["person", "step", "b", "gaps"],
        {"states": "gaps", "columns": "b", **STEPS},
    ),
    "Gaussian graph": Case(
        lambda: sf.GaussianGraph([("x", "y"), ("y", "positive")]),
        lambda model: [model.mean_, model.covariance_],
        ["x", "y", "positive"],
        {},
    ),
    "logistic regression": Case(
        lambda: sf.GLM("binomial"), coefficients, ["x", "a", "success"], {"y": "success", "columns": ["x", "a"]}
    ),
    "Poisson regression": Case(
        lambda: sf.GLM("poisson"), coefficients, ["x", "y", "visits"], {"y": "visits", "columns": ["x", "y"]}
    ),
    "regression by a formula": Case(
        lambda: sf.GLM("poisson", formula="visits ~ scale(x)*C(a, contr.treatment('v')) + np.exp(center(y)/9) + b"),
        coefficients,
        ["x", "y", "a", "b", "visits"],
        {},
    ),
    "EM of tables": Case(
        lambda: sf.BayesianNetwork([("a", "gaps"), ("gaps", "c")]), tables_of("a", "gaps", "c"), ["a", "gaps", "c"], {}
    ),
    "EM of linear-Gaussian nodes": Case(
        lambda: sf.BayesianNetwork([("x", "z"), ("z", "y")]), weights_of("z", "y"), ["x", "z", "y"], {}
    ),
    "hidden node": Case(
        lambda: sf.BayesianNetwork([("H", "a"), ("H", "b"), ("H", "c")], hidden={"H": 2}, random_state=0),
        tables_of("a", "b", "c"),
        ["a", "b", "c"],
        {},
    ),
    "GLM nodes": Case(
        lambda: sf.BayesianNetwork(
            [("x", "success"), ("a", "success"), ("x", "positive")],
            nodes={"success": sf.GLM("binomial"), "positive": sf.GLM("gamma", link="log")},
        ),
        lambda model: [model.node(name).parameters() for name in ("success", "positive")],
        ["x", "a", "success", "positive"],
        {},
    ),
    "EM beside a GLM node": Case(
        lambda: sf.BayesianNetwork(
            [("x", "success"), ("a", "gaps"), ("gaps", "c")], nodes={"success": sf.GLM("binomial")}
        ),
        lambda model: [model.node("success").parameters(), model.table("gaps").values],
        ["x", "success", "a", "gaps", "c"],
        {},
    ),
    "Markov chain": Case(
        sf.MarkovChain,
        lambda model: [model.transitions_.values],
        ["person", "step", "b"],
        {"group": "person", "order": "step", "columns": "b"},
    ),
    "hidden Markov model": Case(
        lambda: sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0, max_iter=20),
        lambda model: [model.transitions_],
        ["person", "step", "b"],
        {"group": "person", "order": "step", "columns": "b"},
    ),
    "hidden Markov model of numbers": Case(
        lambda: sf.HiddenMarkovModel(2, emission=sf.MultivariateNormal(), random_state=0, max_iter=4),
        lambda model: [model.transitions_, *(law.mean_ for law in model.emissions_)],
        ["person", "step", "x", "positive"],
        {"group": "person", "order": "step", "columns": ["x", "positive"]},
        most=16_000,  # Sums over pieces of a line, for each of the tries of a start: as many for any number of rows.
    ),
    "hidden Markov model of counts": Case(  # Of which some lie right between two centres of a start.
        lambda: sf.HiddenMarkovModel(2, emission=sf.Poisson(), random_state=0, max_iter=4),
        lambda model: [model.transitions_],
        ["person", "step", "visits"],
        {"group": "person", "order": "step", "columns": "visits"},
        most=16_000,
    ),
    "hidden Markov model of known states": Case(
        lambda: sf.HiddenMarkovModel(["u", "v", "w"], [sf.Categorical(), sf.Normal()]),
        lambda model: [model.initial_, model.transitions_],
        ["person", "step", "a", "b", "x"],
        {"states": "a", "group": "person", "order": "step", "columns": ["b", "x"]},
    ),
    "chain CRF": Case(
        lambda: sf.ChainCRF(max_iter=6),
        lambda model: [model.weights_],
        ["person", "step", "a", "x", "b"],
        {"y": "b", "group": "person", "order": "step", "columns": ["a", "x"]},
    ),
    "graph CRF": Case(
        lambda: sf.GraphCRF(max_iter=6),
        lambda model: [model.weights_],
        ["person", "step", "next", "x", "y", "success"],
        {"y": "success", "group": "person", "node": "step", "neighbours": "next", "columns": ["x", "y"]},
    ),
    "graph CRF by loopy propagation": Case(
        lambda: sf.GraphCRF(inference="loopy", prior=sf.Normal(variance=10.0), max_iter=4),
        lambda model: [model.weights_],
        ["person", "step", "next", "x", "y", "success"],
        {"y": "success", "group": "person", "node": "step", "neighbours": "next", "columns": ["x", "y"]},
    ),
}


#: Models that differ from those above by their sums and not by the way in which these travel: not asked of all engines.
MORE: dict[str, Case] = {
    "noisy-OR node": Case(
        lambda: sf.BayesianNetwork([("bit0", "bit2"), ("bit1", "bit2")], nodes={"bit2": "noisy-or"}),
        lambda model: [model.node("bit2").parameters()],
        BITS[:3],
        {},
    ),
    "EM of a mixed node": Case(
        lambda: sf.BayesianNetwork([("gaps", "z"), ("x", "z")], max_iter=5), weights_of("z"), ["gaps", "x", "z"], {}
    ),
    "hidden parent of numbers": Case(
        lambda: sf.BayesianNetwork([("H", "x"), ("H", "y")], hidden={"H": 2}, random_state=0, max_iter=5),
        weights_of("x", "y"),
        ["x", "y"],
        {},
    ),
    "hidden variable of a Markov network": Case(
        lambda: sf.MarkovNetwork([("H", "a"), ("H", "b"), ("H", "c")], hidden={"H": 2}, random_state=0, max_iter=4),
        lambda model: [model.weights_],
        ["a", "b", "c"],
        {},
    ),
    "pseudo-likelihood of many variables": Case(
        lambda: sf.MarkovNetwork(list(pairwise(BITS)), solver="pseudolikelihood", max_iter=5),
        lambda model: [model.weights_],
        BITS,
        {},
    ),
    "stochastic maximum likelihood of many variables": Case(
        lambda: sf.MarkovNetwork(list(pairwise(BITS)), solver="sml", max_iter=8, random_state=0),
        lambda model: [model.weights_],
        BITS,
        {},
    ),
    "contrastive divergence": Case(
        lambda: sf.MarkovNetwork([("a", "b"), ("b", "c")], solver="cd", max_iter=8, random_state=0),
        lambda model: [model.weights_],
        ["a", "b", "c"],
        {},
    ),
    "tables with weights": Case(
        lambda: sf.BayesianNetwork([("a", "gaps")]),
        tables_of("gaps"),
        ["a", "gaps", "times"],
        {"sample_weight": "times"},
    ),
    "regression with weights and an exposure": Case(
        lambda: sf.GLM("poisson"),
        coefficients,
        ["x", "a", "visits", "times", "exposure"],
        {"y": "visits", "columns": ["x", "a"], "sample_weight": "times", "exposure": "exposure"},
    ),
    "regression with an offset": Case(
        lambda: sf.GLM("binomial"),
        coefficients,
        ["x", "y", "success"],
        {"y": "success", "columns": ["x"], "offset": "y"},
    ),
    "ordinal regression": Case(
        lambda: sf.GLM("ordinal", states=["u", "v", "w"]),
        coefficients,
        ["x", "y", "b"],
        {"y": "b", "columns": ["x", "y"]},
    ),
    "gamma regression": Case(
        lambda: sf.GLM("gamma", link="log"),
        coefficients,
        ["x", "a", "positive"],
        {"y": "positive", "columns": ["x", "a"]},
    ),
    "negative binomial regression": Case(
        lambda: sf.GLM("negative_binomial"), coefficients, ["x", "a", "visits"], {"y": "visits", "columns": ["x", "a"]}
    ),
    "chain CRF of lists": Case(
        lambda: sf.ChainCRF(max_iter=5),
        lambda model: [model.weights_],
        ["person", "step", "features", "b"],
        {"y": "b", "features": "features", "columns": [], **STEPS},
    ),
}

Question = Callable[[Any, Any], Any]


def questions(*names: str, **options: Any) -> dict[str, Question]:
    """Methods that are asked about rows with some options."""
    return {name: asked_of(name, **options) for name in names}


def asked_of(name: str, **options: Any) -> Question:
    return lambda model, rows: getattr(model, name)(rows, **options)


def joined(parameters: Callable[[Any], list[Any]], *arguments: Any, **options: Any) -> dict[str, Question]:
    """What a model has learned once rows have joined it."""
    return {"partial_fit": lambda model, rows: parameters(deepcopy(model).partial_fit(rows, *arguments, **options))}


def changed_states(method: str, **options: Any) -> Question:
    """What a hidden Markov model has learned once sequences of known states have joined it, or left it again."""

    def ask(model: Any, rows: Any) -> Any:
        changed = deepcopy(model).partial_fit(table(), **options) if method == "unlearn" else deepcopy(model)
        getattr(changed, method)(rows, **options)
        normals = [state["x"] for state in changed.emissions_]
        values = changed.transitions_.ravel(), [law.mean_ for law in normals], [law.variance_ for law in normals]
        return np.concatenate([[changed.report_.rows], *values])

    return ask


def passed_over(**options: Any) -> Question:
    """How far `partial_fit` moves the weights, by steps so short that the order of sequences does not matter."""

    def ask(model: Any, rows: Any) -> Any:
        size = 1e-9
        moved = deepcopy(model).set_params(solver="sgd", step_size=size).partial_fit(rows, **options)
        return (moved.weights_ - model.weights_) / size

    return ask


KNOWN: dict[str, Any] = {"states": "a", "columns": ["b", "x"], **STEPS}
GRAPHS: dict[str, Any] = {"group": "person", "node": "step", "neighbours": "next", "columns": ["x", "y"]}
ANSWERS: dict[str, dict[str, Question]] = {
    "normal distribution": joined(lambda model: [model.mean_], columns=["x"]) | questions("score", columns=["x"]),
    "tables": questions("predict", "predict_proba", target="b")
    | {"query_rows": lambda model, rows: model.query_rows(["a"], rows)}
    | questions("score_samples", "score")
    | joined(tables_of("b")),
    "linear-Gaussian": questions("predict", target="y") | questions("score_samples", "score") | joined(weights_of("y")),
    "EM of tables": questions("predict", "predict_proba", target="gaps") | questions("score_samples", "score"),
    "EM of linear-Gaussian nodes": questions("predict", target="z") | questions("score_samples", "score"),
    "EM beside a GLM node": questions("predict_proba", target="success") | questions("score_samples", "score"),
    "Markov network": questions("predict", "predict_proba", target="b")
    | questions("score_samples", "score")
    | joined(lambda model: [model.weights_]),
    "Gaussian graph": questions("predict", target="y")
    | questions("score_samples", "score")
    | joined(lambda model: [model.covariance_]),
    "logistic regression": questions("predict", "predict_proba")
    | questions("score", "score_samples", "residuals", "leverage", y="success"),
    "regression by a formula": questions("predict", "score", "score_samples", "residuals"),
    "Markov chain": questions("score", "score_samples", columns="b", **STEPS)
    | joined(lambda model: [model.transitions_.values], columns="b", **STEPS),
    "hidden Markov model": questions("score", "score_samples", "predict", "decode", "filter", columns="b", **STEPS),
    "hidden Markov model of numbers": questions(
        "score", "predict", "predict_proba", "forecast", "pairwise", columns=["x", "positive"], **STEPS
    ),
    "hidden Markov model of known states": questions("accuracy", "match_states", **KNOWN)
    | {name: changed_states(name, **KNOWN) for name in ("partial_fit", "unlearn")},
    "chain CRF": questions("predict", "predict_marginals", columns=["a", "x"], **STEPS)
    | questions("score", "score_samples", "evaluate", "accuracy", y="b", columns=["a", "x"], **STEPS)
    | {"one pass": passed_over(y="b", columns=["a", "x"], **STEPS)},
    "graph CRF": questions("predict", "predict_marginals", **GRAPHS)
    | questions("score", "score_samples", "evaluate", "accuracy", y="success", **GRAPHS)
    | {"one pass": passed_over(y="success", **GRAPHS)},
}
#: What is asked of Spark, where each question takes a second: one model for each way in which answers are made.
OF_SPARK = (
    "EM of tables",
    "logistic regression",
    "hidden Markov model of numbers",
    "hidden Markov model of known states",
    "Markov chain",
    "chain CRF",
)


@pytest.fixture(scope="module")
def here() -> Callable[[str], Any]:
    """The fit in memory, by the name of the case."""
    fitted: dict[str, Any] = {}

    def model(name: str) -> Any:
        case = {**CASES, **MORE}[name]
        if name not in fitted:
            fitted[name] = case.model().fit(table()[case.columns], **case.options)
        return fitted[name]

    return model


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """The whole table by the name of a source; engines are started when they are first asked for."""
    folder: Path = tmp_path_factory.mktemp("rows")
    data = table()
    for part in range(PARTS):
        data.iloc[part * ROWS // PARTS : (part + 1) * ROWS // PARTS].to_parquet(folder / f"part-{part}.parquet")
    paths = str(folder / "part-*.parquet")

    def dask() -> Any:
        request.getfixturevalue("client")
        # Dask would make texts of lists.
        with pytest.importorskip("dask").config.set({"dataframe.convert-string": False}):
            return pytest.importorskip("dask.dataframe").read_parquet(paths)

    def spark() -> Any:
        return request.getfixturevalue("spark").read.parquet(paths)

    def duckdb() -> Any:
        return pytest.importorskip("duckdb").from_parquet(paths)

    made: dict[str, Any] = {}
    makers = {"parquet": lambda: paths, "duckdb": duckdb, "dask": dask, "spark": spark}

    def source(name: str) -> Any:
        if name not in made:
            made[name] = makers[name]()
        return made[name]

    return source


@pytest.fixture
def travelled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of each answer that reaches this process; rows that are brought here by other ways are an error."""
    sizes: list[int] = []
    unpacked = Packed.opened

    def opened(packed: Packed) -> Any:
        sizes.append(len(packed.data))
        return unpacked(packed)

    def brought(*arguments: object) -> None:
        raise AssertionError("rows were brought into this process")

    monkeypatch.setattr(Packed, "opened", opened)
    monkeypatch.setattr(DaskSource, "_brought", brought)
    monkeypatch.setattr(SparkSource, "_brought", brought)
    return sizes


@pytest.mark.parametrize(
    ("name", "source"), [*product(CASES, SOURCES), *product(MORE, ("parquet", "dask")), ("chain CRF of lists", "spark")]
)
def test_a_fit_is_that_in_memory(name: str, source: str, opened: Any, here: Any, travelled: list[int]) -> None:
    case, data = {**CASES, **MORE}[name], opened(source)
    model = case.model().fit(data if isinstance(data, str) else choose(data, case.columns), **case.options)
    for value, right in zip(case.parameters(model), case.parameters(here(name)), strict=True):
        np.testing.assert_allclose(np.asarray(value), np.asarray(right), rtol=1e-10, atol=1e-12)
    assert max(travelled, default=0) < case.most
    assert bool(travelled) == (source in ("dask", "spark"))


@pytest.mark.parametrize(
    ("name", "source"), [(n, s) for n in ANSWERS for s in SOURCES if s != "spark" or n in OF_SPARK]
)
def test_answers_are_those_in_memory(name: str, source: str, opened: Any, here: Any, travelled: list[int]) -> None:
    case, data, model = CASES[name], opened(source), here(name)
    rows = data if isinstance(data, str) else choose(data, [*case.columns, *(["row"] if source == "spark" else [])])
    for asked, question in ANSWERS[name].items():
        right, answer = question(model, table()[case.columns]), question(model, rows)
        if asked.startswith("predict") or (asked in ROW_BY_ROW and "group" not in case.options):
            assert (type(answer) is type(rows)) == (source in ("dask", "spark")), asked
        check_equal(answer, right, 1e-4 if asked == "one pass" else 1e-10)


#: Questions that are answered by a value for each row, but for sequences.
ROW_BY_ROW = ("score_samples", "residuals", "leverage", "query_rows")


def check_equal(answer: Any, right: Any, tolerance: float = 1e-10) -> None:
    """The same numbers and labels, whatever holds them."""
    if isinstance(right, tuple):
        for one, other in zip(answer, right, strict=True):
            check_equal(one, other, tolerance)
        return
    if isinstance(right, dict | Evaluation):
        assert answer == right
        return
    expected = joint(right)
    frame = answer.compute() if hasattr(answer, "compute") else answer
    frame = frame.toPandas() if hasattr(frame, "toPandas") else frame
    if isinstance(frame, pd.DataFrame) and frame is not answer:
        keys = [name for name in ("row", *STEPS.values()) if name in frame.columns]
        frame = frame.sort_values(keys) if keys else frame.sort_index()
        values = frame.to_numpy()[:, -int(np.prod(expected.shape[1:])) :].reshape(expected.shape)
    else:
        values = joint(frame)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(values.astype(float), expected, rtol=tolerance, atol=1e-12)
    else:
        assert values.tolist() == expected.tolist()


def joint(answers: Any) -> Any:
    """Answers by sequence one after the other; others as they are."""
    if not isinstance(answers, list):
        return np.asarray(answers)
    arrays = [np.atleast_1d(np.asarray(one)) for one in answers]
    return np.concatenate(arrays if len({one.shape[1:] for one in arrays}) == 1 else [one.ravel() for one in arrays])


def choose(data: Any, columns: list[str]) -> Any:
    """Some columns of a table of any library."""
    return data.select(*columns) if hasattr(data, "select") and not hasattr(data, "npartitions") else data[columns]
