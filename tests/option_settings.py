"""Fitted models with a value for each option of their methods, for `test_options_of_methods`."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import suffice as sf
from suffice.calls import taken_arguments

#: How a call runs, which changes no answer: in how many threads and how much memory, how openly, how deep to look.
STEERING = {"threads", "memory_limit", "deep", "progress"}


#: Errors of estimates by refits, which are slow and have tests of their own.
TRIED_ELSEWHERE = {"bootstrap", "confidence_intervals", "parameter_covariance", "summary", "sensitivity"}


@dataclass(frozen=True, eq=False)
class Setting:
    """A fitted model, what its methods need, and a value for each of their options.

    Names may be those of a method and an argument, as in ``sample.n``, which go before those of the argument alone.
    `beside` are further arguments of the calls of a method, or of those that try one of its options; `without` are
    methods that another setting tries.
    """

    make: Callable[[], Any]
    needed: Mapping[str, Any]
    options: Mapping[str, Any]
    beside: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def methods(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """The public methods that have options: the name, the arguments that are needed, the options."""
        kind = type(self.make())
        for name in dir(kind):
            member = inspect.getattr_static(kind, name)
            member = getattr(member, "method", member)
            if name.startswith("_") or name in TRIED_ELSEWHERE.union(self.without) or not inspect.isfunction(member):
                continue
            own = list(inspect.signature(member).parameters.values())[1:]
            needed = [p.name for p in own if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
            options = [o for o in taken_arguments(member)[1:] if o not in {*needed} | STEERING]
            if options and hasattr(self.make(), name):
                yield name, needed, options

    def value(self, method: str, option: str) -> Any:
        """The value that is tried."""
        return self.options[f"{method}.{option}" if f"{method}.{option}" in self.options else option]

    def arguments(self, method: str, needed: Iterable[str], option: str) -> dict[str, Any]:
        """The arguments of a call that tries an option, without it."""
        given = {name: self.needed.get(f"{method}.{name}", self.needed.get(name)) for name in needed}
        given |= {**self.beside.get(method, {}), **self.beside.get(f"{method}.{option}", {})}
        return {name: one for name, one in given.items() if name != option}


def fitted(make: Callable[[], Any], *data: Any, **more: Any) -> Callable[[], Any]:
    """A function that gives a copy of a model that has been fitted once."""
    model = cache(lambda: make().fit(*data, **more))

    def again() -> Any:
        import copy

        return copy.copy(model())

    return again


RNG = np.random.default_rng(5)

# Sequences ----------------------------------------------------------------------------------------------------------
TEXTS = ["abacabad", "bacab", "cabba"]
CHAIN = {
    "group": "g", "order": "t", "columns": ["q"], "lengths": [1, 2], "y": [1, 2, 3], "sample_weight": [1.0, 2.0, 3.0],
    "held_out": TEXTS, "keep": 0.5, "history": ["b"], "initial": True, "n": 3, "length": 4, "random_state": 3,
    "unlearn.sample_weight": [0.5], "unlearn.lengths": [1],
}  # fmt: skip
STEPS = pd.DataFrame(
    {"g": [1] * 6 + [2] * 5, "t": [*range(10, 1, -1), 0, 1], "s": list("abbcaacbbca"), "q": list("bbacabbacaa")}
)
OF_TEXTS = {"data": TEXTS, "rows": TEXTS, "unlearn.data": TEXTS[:1], "word": "a"}
LENGTH: dict[str, dict[str, Any]] = {"sample": {"length": 6, "n": 5, "random_state": 0}}
SPOKEN: dict[str, dict[str, Any]] = {
    name: {"columns": ["s"]} for name in ("fit", "partial_fit", "perplexity", "score", "score_samples", "unlearn")
}
BY_GROUP: dict[str, dict[str, Any]] = {
    f"{name}.sample_weight": {"group": "g"} for name in ("fit", "partial_fit", "perplexity", "score", "unlearn")
}

STEPPED = np.random.default_rng(17)
REALS = STEPPED.normal(np.repeat(STEPPED.integers(0, 2, 12) * 1.6, 5), 1.0)
PATH = (REALS > 0.8).astype(int).tolist()
HIDDEN = {
    "group": "g", "order": "t", "columns": ["q"], "lengths": [1] * 60, "states": PATH, "method": "posterior",
    "sample_weight": [2.0, 1.0, 1.0], "n": 3, "steps": 3, "random_state": 4,
    "unlearn.sample_weight": [0.5], "unlearn.lengths": [5, 15], "unlearn.states": PATH[:20],
}  # fmt: skip
OF_REALS = {"sequences": REALS, "unlearn.sequences": REALS[:20], "states": PATH, "steps": 5}
MEASURED = pd.DataFrame({"g": [0, 1, 2] * 20, "t": RNG.permutation(60), "v": REALS, "q": REALS[::-1] + 0.5})
SEED: dict[str, dict[str, Any]] = {
    "sample_paths": {"random_state": 0},
    "sample_paths.random_state": {"n": 9},
    "sample": {"random_state": 0},
}
WEIGHED = ("fit", "identifiability", "score", "standard_errors_of", "partial_fit")
IN_PARTS: dict[str, dict[str, Any]] = {f"{name}.sample_weight": {"lengths": [20, 20, 20]} for name in WEIGHED}
KNOWN: dict[str, dict[str, Any]] = {"partial_fit": {"states": PATH}, "unlearn": {"states": PATH[:20]}}

# Rows ---------------------------------------------------------------------------------------------------------------
N = 60
A = RNG.integers(0, 2, N)
ROWS = pd.DataFrame({"a": A, "b": np.where(RNG.random(N) < 0.7, A, 1 - A), "c": RNG.integers(0, 2, N)})
WEIGHTS = RNG.integers(1, 4, N).astype(float)
TABLE = pd.crosstab([ROWS["a"], ROWS["b"]], ROWS["c"]) + 1
NET = {
    "y": 1 - ROWS["a"], "sample_weight": WEIGHTS, "columns": ["c"], "given": {"a": 1}, "do": {"b": 1},
    "engine": "sampling",
    "n": 7, "random_state": 3, "variables": ["a"], "keep": 0.5, "classes": [0, 1, 2], "missing": 0.5, "data": ROWS[:20],
    "size_report.data": pd.concat([ROWS, ROWS + 1]), "chains": 3, "steps": 4, "table": TABLE,
    "unlearn.sample_weight": np.full(10, 0.5), "impute.method": "draws",
    "d_separated.given": "b", "mutual_information.given": "c", "surprise.n": 9,
    "log_probability.do": {"b": 1}, "query_rows.columns": ["a"],
    "residuals.kind": "raw", "coding": "sum", "reference": {"a": 1}, "effects.level": 0.5,
    "map_query.given": {"a": int(ROWS["a"].mode()[0] == 0)}, "map_query.do": {"b": int(ROWS["b"].mode()[0] == 0)},
}  # fmt: skip
OF_NET = {
    "first": "a",
    "second": "b",
    "data": ROWS,
    "variables": ["c"],
    "unlearn.data": ROWS[:10],
    "target": "a",
    "rows": ROWS,
}
DRAWN: dict[str, dict[str, Any]] = {
    "sample": {"n": 20, "random_state": 0}, "sample.random_state": {"n": 20}, "log_probability.do": {"given": {"c": 1}},
    "query.engine": {"given": {"a": 0}}, "impute": {"rows": ROWS.where(np.arange(N)[:, None] % 4 != [0, 1, 2])},
}  # fmt: skip
MATRIX = RNG.normal(size=(N, 3)) @ (np.eye(3) + 0.4)
NUMBERS = pd.DataFrame(MATRIX, columns=["a", "b", "c"])
IMPUTED = {"impute": {"rows": NUMBERS.where(np.arange(N)[:, None] % 4 != [0, 1, 2])}}
SQUARES = NUMBERS[:10].cov()
GAUSS = {
    **NET, "y": WEIGHTS, "given": {"a": 1.0}, "covariance": SQUARES, "sample_mean": np.full(3, 0.1), "n": 9,
    "what": "covariance", "level": 0.5, "unlearn.data": NUMBERS[:10],
    "data": NUMBERS, 
}  # fmt: skip
OF_GAUSS = {**OF_NET, "data": NUMBERS}
ALL_ROWS: dict[str, dict[str, Any]] = {name: {"data": NUMBERS} for name in ("fit", "partial_fit", "unlearn")}
BESIDE_COVARIANCE = {
    f"{name}.{option}": {"data": None, "covariance": SQUARES, "n": 5}
    for name in ("fit", "partial_fit", "unlearn")
    for option in ("covariance", "n", "sample_mean")
}
NETWORK = [("a", "b"), ("b", "c")]

# Regressions --------------------------------------------------------------------------------------------------------
X = RNG.normal(size=(N, 2))
COUNTS = RNG.poisson(np.exp(0.2 + X @ [0.5, -0.3]))
LABELS = np.array(["u", "v", "w"])[RNG.integers(0, 3, N)]
GLM = {
    "y": COUNTS[::-1], "sample_weight": WEIGHTS, "offset": np.linspace(0, 1, N), "exposure": np.linspace(1, 2, N),
    "trials": np.full(N, 9),
    "columns": ["p", "q"], "level": 0.5, "method": "profile", "X": X, "kind": "linear", "residuals.kind": "working",
    "interval": 0.9, "random_state": 3, "residuals.offset": np.linspace(0, 1, N), "classes": ["a", "b"],
    "marginal_effects.columns": ["x0"], "at": "mean", "discrete": "x1", "against": "v", "pairs": True,
    "exponentiate": True, "term_tests.method": "likelihood-ratio", "data": X,
}  # fmt: skip


def regression(family: Any, y: Any, **options: Any) -> Setting:
    without = ("leverage", "residuals") if family in ("multinomial", "ordinal") else ()
    names = ("fit", "leverage", "partial_fit", "residuals", "score", "score_samples", "intervals")
    needed = {"X": X, "hypothesis": "x0 = x1", "factor": "x0", "covariance": "HC1"}
    beside = {name: {"y": y} for name in names[:-1]} | {"sample": {"random_state": 0}, "intervals.y": {"X": X}}
    beside |= {"with_covariance.X": {"y": y}, "with_covariance.y": {"X": X}}
    tried = {**GLM, "y": y[::-1], "with_covariance.y": y}
    return Setting(fitted(lambda: sf.GLM(family, **options), X, y), needed, tried, beside, without)


# Conditional random fields ------------------------------------------------------------------------------------------
RIDGE = sf.Normal(variance=1.0)
SENTENCES = [
    [{"w": letter, "n": str(k % 2)} for k, letter in enumerate(word)] for word in ("abab", "ba", "aab", "bcba")
]
TAGS = [list("ABBB"), list("BA"), list("AAB"), list("BBAA")]
FIELD = {
    "y": [[*reversed(tags)] for tags in TAGS], "sample_weight": [1.0, 2.0, 1.0, 3.0], "group": "g", "order": "t",
    "columns": ["w"],
    "features": "f", "validation": (SENTENCES[:1], TAGS[:1]), "k": 2, "n": 2, "label": "A", "lowest": True,
    "random_state": 4, "node": "t", "neighbours": "f",
}  # fmt: skip
TOKENS = pd.DataFrame(
    {
        "g": np.repeat([0, 1, 2], 4),
        "t": [*range(11, -1, -1)],
        "w": list("ababbaabbcba"),
        "n": list("010101010101"),
        "y": list("ABABBAABBBBA"),
    }
)
TOKENS["f"] = [[letter, f"n{n}"] for letter, n in zip(TOKENS["w"], TOKENS["n"], strict=True)]
GRAPHS = [sf.GraphExample(RNG.normal(size=(3, 2)), [(0, 1), (1, 2), (2, 0)]) for _ in range(5)]
KINDS = [np.array(["u", "v"])[RNG.integers(0, 2, 3)] for _ in range(5)]
SAID: dict[str, dict[str, Any]] = {
    name: {"y": TAGS}
    for name in ("fit", "partial_fit", "score", "score_samples", "accuracy", "evaluate", "standard_errors_of")
}
NODES = pd.DataFrame(
    {
        "g": [0, 0, 0, 1, 1, 1],
        "t": list("abcabc"),
        "f": [["b"], ["c"], [], ["b", "c"], [], []],
        "p": X[:6, 0],
        "q": X[:6, 1],
        "y": list("uvuvvu"),
    }
)
WHOLE_GRAPH: dict[str, Any] = {"group": "g", "node": "t", "neighbours": "f", "columns": ["p", "q"]}
OF_NODES: dict[str, dict[str, Any]] = {name: {"y": "y", **WHOLE_GRAPH} for name in ("fit", "score", "score_samples")}

# Distributions ------------------------------------------------------------------------------------------------------
DRAWN_FROM: dict[str, tuple[Callable[[], Any], Any]] = {
    "Bernoulli": (lambda: sf.Bernoulli(prior=sf.Beta(2.0, 1.0)), [0, 1, 1, 1, 0, 1]),
    "Categorical": (lambda: sf.Categorical(prior=1.0), ["u", "v", "u", "w", "u", "v"]),
    "Exponential": (lambda: sf.Exponential(prior=sf.Gamma(2.0, 1.0)), [0.5, 1.5, 0.2, 3.0, 0.9, 1.1]),
    "Gamma": (lambda: sf.Gamma(shape=2.0, prior=sf.Gamma(2.0, 1.0)), [0.5, 1.5, 0.2, 3.0, 0.9, 1.1]),
    "Gamma of any shape": (sf.Gamma, [0.5, 1.5, 0.2, 3.0, 0.9, 1.1]),
    "InverseGamma": (sf.InverseGamma, [0.5, 1.5, 0.2, 3.0, 0.9, 1.1]),
    "StudentT": (sf.StudentT, [0.5, 0.7, 0.2, 9.0, 0.9, 1.1]),
    "VonMises": (sf.VonMises, [0.5, 1.5, 0.2, 3.0, 0.9, 1.1]),
    "Beta": (sf.Beta, [0.5, 0.3, 0.2, 0.7, 0.9, 0.4]),
    "Dirichlet": (sf.Dirichlet, [[0.5, 0.5], [0.3, 0.7], [0.2, 0.8], [0.7, 0.3], [0.9, 0.1], [0.4, 0.6]]),
    "Geometric": (lambda: sf.Geometric(prior=sf.Beta(2.0, 1.0)), [0, 2, 1, 1, 0, 4]),
    "NegativeBinomial": (lambda: sf.NegativeBinomial(size=2.0, prior=sf.Beta(2.0, 1.0)), [0, 2, 1, 1, 0, 4]),
    "Poisson": (lambda: sf.Poisson(prior=sf.Gamma(2.0, 1.0)), [0, 2, 1, 1, 0, 4]),
    "Normal": (lambda: sf.Normal(prior=sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0)), [0.5, -1.5, 0.2, 3.0, 0.9, 1.1]),
    "MultivariateNormal": (
        lambda: sf.MultivariateNormal(prior=sf.NormalWishart([0.0, 0.0], 1.0, 4.0, np.eye(2))), X[:6]
    ),
    "Mixture": (lambda: sf.Mixture(sf.Normal(), 2), REALS[:6]),
}  # fmt: skip
PRIORS: dict[str, tuple[Callable[[], Any], Any]] = {
    "Beta": (lambda: sf.Beta(2.0, 1.0), sf.Bernoulli()),
    "Dirichlet": (lambda: sf.Dirichlet([2.0, 1.0]), sf.Categorical()),
    "Gamma": (lambda: sf.Gamma(2.0, 1.0), sf.Poisson()),
    "NormalInverseGamma": (lambda: sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0), sf.Normal()),
    "NormalWishart": (lambda: sf.NormalWishart([0.0, 0.0], 1.0, 4.0, np.eye(2)), sf.MultivariateNormal()),
    "Wishart": (lambda: sf.Wishart(4.0, np.eye(2)), sf.MultivariateNormal([0.0, 0.0])),
}


def natural(model: Any) -> dict[str, Any]:
    """Natural parameters that are not those of a distribution, and a direction among them; none where it has none."""
    eta = getattr(model, "natural_parameters_", None)
    return {} if eta is None else {"eta": 0.9 * eta - 0.01, "direction": np.ones(len(eta))}


def family(make: Callable[[], Any], data: Any) -> Setting:
    """A distribution fitted to six values."""
    again = fitted(make, data)
    options = {
        "y": [1] * 6, "sample_weight": [1, 2, 3, 1, 1, 2], "columns": ["p", "q"], "keep": 0.5, "level": 0.5, "n": 20,
        "random_state": 3, "unlearn.sample_weight": [0.5], "likelihood": sf.Normal(), **natural(again()),
    }  # fmt: skip
    return Setting(again, {"data": data, "order": 2, "unlearn.data": data[:1]}, options, DRAWN)


def prior(given: Callable[[], Any], likelihood: Any) -> Setting:
    """A distribution whose parameters are given, as a prior of others; its posterior is after a summary of these."""
    data = DRAWN_FROM[type(likelihood).__name__][1]
    options = {
        "y": [1] * 6, "sample_weight": [1, 2, 3, 1, 1, 2], "columns": ["p", "q"], "keep": 0.5, "level": 0.5, "n": 20,
        "random_state": 3, "likelihood": sf.Geometric(), **natural(given()),
    }  # fmt: skip
    needed = {"data": data, "order": 2, "posterior.data": likelihood.clone().fit(data).statistics_}
    return Setting(given, needed, options, DRAWN, ("fit", "partial_fit", "score", "unlearn"))


TABLES_ONLY = ("accuracy", "evaluate", "partial_fit", "sample_labels", "predict_k_best")
SETTINGS: dict[str, Setting] = {
    "chain of texts": Setting(
        fitted(lambda: sf.MarkovChain(prior=1.0), TEXTS), OF_TEXTS, CHAIN, LENGTH, ("responsibilities",)
    ),
    "chain with a mixture as prior": Setting(
        fitted(lambda: sf.MarkovChain(prior=sf.DirichletMixture([0.5, 0.5], [[1.0] * 4, [3.0] * 4])), TEXTS),
        OF_TEXTS,
        CHAIN,
        LENGTH,
        ("unlearn",),
    ),
    "chain of steps": Setting(
        fitted(lambda: sf.MarkovChain(prior=1.0), STEPS, columns=["s"]),
        {**OF_TEXTS, "data": STEPS, "rows": STEPS, "unlearn.data": STEPS[4:8]},
        {**CHAIN, "sample_weight": [2.0, 1.0], "lengths": [3, 8]},
        {**LENGTH, **SPOKEN, **BY_GROUP},
        ("responsibilities", "unlearn"),
    ),
    "hidden chain of reals": Setting(
        fitted(lambda: sf.HiddenMarkovModel(2, sf.Normal()), REALS), OF_REALS, HIDDEN, {**SEED, **IN_PARTS}
    ),
    "hidden chain of a table": Setting(
        fitted(lambda: sf.HiddenMarkovModel(2, sf.Normal()), MEASURED, columns=["v"]),
        {**OF_REALS, "sequences": MEASURED},
        HIDDEN,
        {**SEED, **{name: {"group": "g"} for name in IN_PARTS}},
        ("standard_errors_of",),
    ),
    "known chain of reals": Setting(
        fitted(lambda: sf.HiddenMarkovModel(2, sf.Normal()), REALS, PATH, lengths=[20] * 3),
        OF_REALS,
        HIDDEN,
        {**SEED, **IN_PARTS, **KNOWN},
    ),
    "network": Setting(fitted(lambda: sf.BayesianNetwork(NETWORK, prior=1.0), ROWS), OF_NET, NET, DRAWN),
    "network of reals": Setting(
        fitted(lambda: sf.BayesianNetwork(NETWORK), NUMBERS),
        OF_GAUSS,
        {**GAUSS, "do": {"b": 1.0}, "log_probability.do": {"b": 1.0}, "map_query.do": {"b": 1.0}},
        {**DRAWN, **IMPUTED, "log_probability.do": {"given": {"c": 1.0}}},
        ("log_predictive", "predict_proba", "query_rows"),
    ),
    "network with a target": Setting(
        fitted(lambda: sf.BayesianNetwork(NETWORK, target="a"), ROWS), OF_NET, NET, DRAWN, ("log_predictive",)
    ),
    "Markov network": Setting(
        fitted(lambda: sf.MarkovNetwork(NETWORK), ROWS),
        OF_NET,
        NET,
        {**DRAWN, "fit": {"data": ROWS}, "fit.table": {"data": None}},
    ),
    "Gaussian graph": Setting(
        fitted(lambda: sf.GaussianGraph(NETWORK), NUMBERS),
        OF_GAUSS,
        GAUSS,
        {**DRAWN, **ALL_ROWS, "unlearn": {"data": NUMBERS[:10]}, **BESIDE_COVARIANCE},
    ),
    "counts on numbers": regression("poisson", COUNTS),
    "reals on numbers": regression("gaussian", np.exp(X @ [0.3, 0.2]) + RNG.random(N), link="log"),
    "labels on numbers": regression("multinomial", LABELS),
    "truth on numbers": regression("binomial", np.where(LABELS == "u", "u", "v")),
    "order on numbers": regression("ordinal", LABELS, states=["u", "v", "w"]),
    "sentences": Setting(fitted(lambda: sf.ChainCRF(prior=RIDGE), SENTENCES, TAGS), {"X": SENTENCES}, FIELD, SAID),
    "tokens": Setting(
        fitted(
            lambda: sf.ChainCRF(prior=sf.Normal(variance=50.0)), TOKENS, "y", group="g", columns=["n"], features="f"
        ),
        {"X": TOKENS},
        {**FIELD, "y": TOKENS["y"].tolist()[::-1], "sample_weight": [1.0, 2.0, 3.0]},
        {key: {"y": "y", "group": "g", "columns": ["n"]} for key in ("fit", "score", "score_samples")}
        | {key: {"group": "g"} for key in ("predict", "predict_marginals")},
        TABLES_ONLY,
    ),
    "graphs": Setting(
        fitted(lambda: sf.GraphCRF(prior=RIDGE), GRAPHS, KINDS),
        {"X": GRAPHS},
        {
            **FIELD,
            "y": KINDS[::-1],
            "sample_weight": [1.0, 2.0, 3.0, 1.0, 1.0],
            "validation": (GRAPHS[:1], KINDS[:1]),
        },
        {name: {"y": KINDS} for name in SAID},
    ),
    "nodes": Setting(
        fitted(lambda: sf.GraphCRF(prior=RIDGE), NODES, "y", **WHOLE_GRAPH),
        {"X": NODES},
        {**FIELD, "columns": ["q", "p"], "y": NODES["y"].tolist()[::-1], "sample_weight": [1.0, 2.0]},
        {**OF_NODES, "predict": WHOLE_GRAPH, "predict_marginals": WHOLE_GRAPH},
        TABLES_ONLY,
    ),
    **{f"drawn from {name}": family(make, data) for name, (make, data) in DRAWN_FROM.items()},
    **{f"prior {name}": prior(given, likelihood) for name, (given, likelihood) in PRIORS.items()},
}
