"""Options do what they say, or are refused, in every model: the tables of `test_options_have_effects` for all others.

For each option the table names a value that changes the result, beside which other options it does so, and what is
read; or the combinations in which it could change nothing and is an error. Options that steer a run are listed by name.
An option of a model that stands nowhere fails the first test.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeWarning")

#: How long, where and how openly a fit goes, from which point, within which memory, and which numbers are drawn.
ANY_FIT = {
    *("max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint", "memory_limit", "threads"),
    "random_state",
}

RNG = np.random.default_rng(12)
N = 80
A = RNG.integers(0, 2, N)
ROWS = {"a": A, "b": np.where(RNG.random(N) < 0.7, A, 1 - A), "c": RNG.integers(0, 2, N)}
GAPPY = {**ROWS, "b": [None if k % 5 == 0 else int(value) for k, value in enumerate(ROWS["b"])]}
REALS = RNG.normal(size=(30, 4)) @ (np.eye(4) + 0.4)
CYCLE = [("a", "b"), ("b", "c"), ("c", "a")]
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
TEXTS = ["abacabad", "bacab", "cabba"]
STEPS = np.concatenate([RNG.normal(0, 1, 30), RNG.normal(4, 1, 30)])
PAIRS = RNG.normal(size=(60, 2)) + np.repeat([[0, 0], [4, 2]], 30, axis=0)
SENTENCES = [
    [{"w": letter, "n": str(k % 2)} for k, letter in enumerate(word)] for word in ("abab", "ba", "aab", "bcba")
]
TAGS = [list("ABBB"), list("BA"), list("AAB"), list("BBAA")]
GRAPHS = [sf.GraphExample(RNG.normal(size=(3, 2)), [(0, 1), (1, 2), (2, 0)]) for _ in range(5)]
LABELS = [np.array(["u", "v"])[RNG.integers(0, 2, 3)] for _ in range(5)]
RIDGE = sf.Normal(variance=1.0)

Effect = tuple[Any, dict[str, Any], Callable[..., Any]]
Refused = tuple[dict[str, Any], str]


def network(data: Any = None, read: Callable[[Any], Any] = lambda net: net.table("b").values) -> Callable[..., Any]:
    def fit(**options: Any) -> Any:
        structure = options.pop("structure", [("a", "b")])
        return read(sf.BayesianNetwork(structure, **options).fit(ROWS if data is None else data))

    return fit


def field(read: Callable[[Any], Any] = lambda net: net.weights_, data: Any = None) -> Callable[..., Any]:
    def fit(**options: Any) -> Any:
        structure = options.pop("structure", CYCLE)
        return read(sf.MarkovNetwork(structure, **options).fit(ROWS if data is None else data))

    return fit


def graph(**options: Any) -> Any:
    structure = options.pop("structure", SQUARE)
    model = sf.GaussianGraph(structure, **options).fit(REALS, columns=range(4))
    return np.concatenate([np.asarray(model.precision_).ravel(), np.asarray(model.mean_).ravel()])


def first_iterate(make: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **options: make(max_iter=1, **options)


def chain(read: Callable[[Any], Any] = lambda model: model.score_samples(["acab"])) -> Callable[..., Any]:
    return lambda **options: read(sf.MarkovChain(**options).fit(TEXTS))


def hmm(read: Callable[[Any], Any] = lambda model: model.transitions_, data: Any = STEPS) -> Callable[..., Any]:
    def fit(**options: Any) -> Any:
        states, emission = options.pop("states", 2), options.pop("emission", sf.Normal())
        return read(sf.HiddenMarkovModel(states, emission, **options).fit(data))

    return fit


def tagger(read: Callable[[Any], Any] = lambda crf: crf.weights_) -> Callable[..., Any]:
    return lambda **options: np.asarray(read(sf.ChainCRF(**{"prior": RIDGE, **options}).fit(SENTENCES, TAGS)))


def labeller(**options: Any) -> Any:
    return np.asarray(sf.GraphCRF(**{"prior": RIDGE, **options}).fit(GRAPHS, LABELS).weights_)


def watched(make: Callable[..., Any], X: Any, y: Any) -> Callable[..., Any]:
    """How many iterations are made while examples are watched."""

    def fit(**options: Any) -> int:
        seen: list[Any] = []
        make(callback=seen.append, **options).fit(X, y, validation=(X[1:2], [y[1][::-1]]))
        return len(seen)

    return fit


def _with_clique(graph: Any) -> Any:
    return sf.GraphExample(graph.nodes, graph.edges, cliques={"alone": [[0]]})


HIDDEN: dict[str, Any] = {"structure": [("h", "a"), ("h", "b"), ("h", "c")], "hidden": {"h": 2}, "max_iter": 40}
SGD: dict[str, Any] = {"solver": "sgd", "max_iter": 3}

EFFECTS: dict[str, dict[str, Effect]] = {
    "BayesianNetwork": {
        "structure": ([("c", "b")], {}, network()),
        "target": ("b", {}, network(read=lambda net: net.score(ROWS, ROWS["b"]))),
        "objective": ("conditional", {"target": "a", "prior": 1.0}, network()),
        "solver": (
            "cg",
            {"target": "a", "prior": 1.0, "objective": "conditional"},
            network(read=lambda net: net.report_.method),
        ),
        "states": ({"b": [1, 0]}, {}, network()),
        "nodes": ({"b": "noisy-or"}, {"states": {"a": [0, 1], "b": [0, 1]}}, network(read=lambda n: n.node("b").kind)),
        "tied": ([["b", "c"]], {"structure": {"b": ["a"], "c": ["a"]}}, network()),
        "prior": (1.0, {}, network()),
        "equivalent_sample_size": (2.0, {"prior": "bdeu"}, network()),
        "estimate": ("map", {"prior": 2.0}, network()),
        "unseen": ("nan", {"states": {"a": [0, 1, 2]}}, network()),
        "fixed": ({"b": [[0.5, 0.5], [0.1, 0.9]]}, {}, network()),
        "hidden": ({"a": 2}, {}, network(read=lambda net: net.report_.log_likelihood)),
        "missing": ("raise", {}, network(GAPPY)),
        "start": ({"b": [[0.9, 0.1], [0.2, 0.8]]}, {"max_iter": 1}, network(GAPPY)),
        "n_init": (8, {**HIDDEN, "max_iter": 2}, network(read=lambda net: net.report_.log_likelihood)),
        "acceleration": ("squarem", HIDDEN, network(read=lambda net: net.n_iter_)),
        "variance_floor": (
            0.5,
            {"structure": [("h", "x")], "hidden": {"h": 2}, "max_iter": 60},
            network({"x": STEPS}, lambda net: net.node("x").variance_),
        ),
    },
    "MarkovNetwork": {
        "structure": ([("a", "b"), ("b", "c")], {}, field()),
        "states": ({"a": [0, 1, 2]}, {"prior": RIDGE}, field()),
        "hidden": ({"h": 2}, {"structure": [("h", "a"), ("h", "b")]}, field(lambda net: net.report_.n_params)),
        "missing": ("raise", {}, field(data=GAPPY)),
        "prior": (RIDGE, {}, field()),
        "solver": ("lbfgs", {}, field(lambda net: net.report_.method)),
        "start": (np.full(12, 0.3), {"solver": "lbfgs"}, first_iterate(field())),
        "m_steps": (1, {"solver": "lbfgs", "max_iter": 2}, field(data=GAPPY)),
        "n_init": (8, {**HIDDEN, "max_iter": 2}, field(lambda net: net.report_.log_likelihood)),
        "acceleration": ("squarem", HIDDEN, field(lambda net: net.report_.method)),
        "on_inconsistent": (
            "warn",
            {"structure": [("a", "b"), ("b", "c")], "states": {name: [0, 1] for name in "abc"}},
            field(data={("a", "b"): np.array([[5.0, 1], [1, 5]]), ("b", "c"): np.array([[9.0, 1], [1, 1]])}),
        ),
        "check_existence": (False, {}, field(lambda net: net.report_.certificate.exists)),
        "sampling": (sf.GibbsSampling(sweeps=3), {"solver": "sml", "max_iter": 3}, field()),
        "batch_size": (7, {"solver": "cd", "max_iter": 3}, field()),
        "step_size": (0.01, {"solver": "cd", "max_iter": 3}, field()),
    },
    "GaussianGraph": {
        "structure": ([(0, 1), (2, 3)], {}, graph),
        "nodes": ([3, 2, 1, 0], {}, graph),
        "mean": ("zero", {}, graph),
        "prior": (RIDGE, {}, graph),
        "solver": (
            "lbfgs",
            {},
            lambda **options: sf.GaussianGraph(SQUARE, **options).fit(REALS, columns=range(4)).report_.method,
        ),
        "start": (np.eye(4) * 3.0, {"solver": "newton"}, first_iterate(graph)),
    },
    "MarkovChain": {
        "order": (2, {}, chain(lambda model: model.n_params_)),
        "smoothing": (sf.KneserNey(), {}, chain()),
        "prior": (1.0, {}, chain()),
        "estimate": ("map", {"prior": 2.0}, chain()),
        "states": (list("abcde"), {"prior": 1.0}, chain()),
        "bounds": (True, {}, chain(lambda model: model.n_params_)),
        "unknown": ("?", {"prior": 1.0}, chain(lambda model: model.score_samples(["zab"]))),
        "min_count": (3, {"unknown": "?", "prior": 1.0}, chain()),
        "tokens": (lambda text: [text[0], text[-1]], {}, chain(lambda model: model.transitions_.values)),
        "unseen": ("nan", {}, chain(lambda model: model.transitions_.values)),
        "learn_prior": (True, {"prior": 1.0}, chain()),
    },
    "HiddenMarkovModel": {
        "states": (3, {}, hmm()),
        "emission": (sf.MultivariateNormal(), {}, hmm(lambda model: model.n_params_, PAIRS)),
        "covariance": ("diagonal", {"emission": sf.MultivariateNormal()}, hmm(data=PAIRS)),
        "prior": (1.0, {}, hmm()),
        "estimate": ("map", {"prior": 2.0}, hmm()),
        "initial": ("stationary", {}, hmm(lambda model: model.n_params_)),
        "transitions": ([[0.5, 0.5], [0.0, 1.0]], {}, hmm()),
        "durations": (sf.Poisson(), {}, hmm(lambda model: model.report_.log_likelihood)),
        "emissions": ([sf.Normal(4.0, 1.0), sf.Normal(0.0, 1.0)], {}, hmm()),
        "topology": ("left-right", {}, hmm()),
        "fixed": (("transitions",), {"transitions": [[0.5, 0.5], [0.5, 0.5]]}, hmm()),
        "tied": ([[0, 1]], {}, hmm(lambda model: model.n_params_)),
        "n_init": (8, {"states": 4, "max_iter": 2}, hmm(lambda model: model.report_.log_likelihood)),
        "acceleration": ("squarem", {}, hmm(lambda model: model.n_iter_)),
        "variance_floor": (0.5, {}, hmm()),
    },
    "ChainCRF": {
        "prior": (sf.Normal(variance=0.1), {}, tagger()),
        "solver": ("newton", {"tolerance": 1e-3}, tagger()),
        "all_possible_states": (True, {}, tagger(lambda crf: len(crf.weights_))),
        "all_possible_transitions": (True, {"labels": list("ABC")}, tagger(lambda crf: len(crf.weights_))),
        "boundaries": (True, {}, tagger(lambda crf: len(crf.weights_))),
        "bias": (True, {}, tagger(lambda crf: len(crf.weights_))),
        "conditioned_transitions": (True, {}, tagger(lambda crf: len(crf.weights_))),
        "constraints": (
            [("A", "C")],
            {"labels": list("ABC"), "all_possible_transitions": True},
            tagger(lambda crf: len(crf.weights_)),
        ),
        "labels": (list("ABC"), {"all_possible_states": True}, tagger(lambda crf: len(crf.weights_))),
        "min_frequency": (2, {}, tagger(lambda crf: len(crf.weights_))),
        "hashing": (4, {}, tagger()),
        "step_size": (0.01, SGD, tagger()),
        "decay": (0.9, SGD, tagger()),
        "batch_size": (2, SGD, tagger()),
        "average": (True, SGD, tagger()),
        "shuffle": (False, SGD, tagger()),
        "expectations": ("sampled", SGD, tagger()),
        "n_samples": (1, {**SGD, "expectations": "sampled"}, tagger()),
        "n_sweeps": (1, {**SGD, "expectations": "gibbs"}, tagger()),
        "patience": (1, {"max_iter": 60}, watched(sf.ChainCRF, SENTENCES, TAGS)),
        "warm_start": (True, {}, lambda **o: _twice(sf.ChainCRF(prior=RIDGE, max_iter=2, **o), SENTENCES, TAGS)),
    },
    "GraphCRF": {
        "prior": (sf.Normal(variance=0.1), {}, labeller),
        "edge_weights": ("equal", {}, lambda **options: len(labeller(**options))),
        "templates": (
            {"alone": "full"},
            {},
            lambda **options: len(
                sf.GraphCRF(prior=RIDGE, **options)
                .fit([_with_clique(graph) if options else graph for graph in GRAPHS], LABELS)
                .weights_
            ),
        ),
        "labels": (list("uvw"), {}, lambda **options: len(labeller(**options))),
        "solver": ("newton", {"tolerance": 1e-3}, labeller),
        "inference": ("pseudo-likelihood", {}, labeller),
        "max_cells": (1, {}, labeller),
        "step_size": (0.01, SGD, labeller),
        "decay": (0.9, SGD, labeller),
        "batch_size": (2, SGD, labeller),
        "average": (True, SGD, labeller),
        "shuffle": (False, SGD, labeller),
        "expectations": ("sampled", SGD, labeller),
        "n_samples": (1, {**SGD, "expectations": "sampled"}, labeller),
        "n_sweeps": (1, {**SGD, "expectations": "gibbs"}, labeller),
        "patience": (1, {"max_iter": 60}, watched(sf.GraphCRF, GRAPHS, LABELS)),
        "warm_start": (True, {}, lambda **o: _twice(sf.GraphCRF(prior=RIDGE, max_iter=2, **o), GRAPHS, LABELS)),
    },
}

#: By model and option: other options beside which it changes nothing, and words of the error. The first value of
#: `EFFECTS` is set.
REFUSED: dict[str, dict[str, list[Refused]]] = {
    "BayesianNetwork": {
        "equivalent_sample_size": [({}, "weight of prior='bdeu'"), ({"prior": 1.0}, "weight of prior='bdeu'")],
        "estimate": [({}, "needs a prior")],
        "n_init": [({}, "where nodes are hidden")],
        "acceleration": [({"missing": "raise"}, "one of EM")],
        "variance_floor": [({"missing": "raise"}, "one of EM")],
        "start": [({"missing": "raise"}, "one of EM")],
    },
    "MarkovNetwork": {
        "batch_size": [({}, "solver='sml' and solver='cd'"), ({"solver": "ipf"}, "one of solver='sml'")],
        "step_size": [({}, "solver='sml' and solver='cd'"), ({"solver": "lbfgs"}, "one of solver='sml'")],
        "n_init": [({}, "where variables are hidden")],
        "acceleration": [({"missing": "raise"}, "one of EM")],
        "m_steps": [({"missing": "raise"}, "one of EM")],
        "check_existence": [({"prior": RIDGE}, "with a prior the maximum exists")],
        "start": [({"solver": "closed-form", "missing": "raise"}, "a closed form begins nowhere")],
    },
    "GaussianGraph": {
        "start": [({"solver": "closed-form"}, "begin nowhere"), ({"solver": "regression"}, "begin nowhere")],
    },
    "MarkovChain": {
        "estimate": [({}, "give prior=")],
        "learn_prior": [({}, "give prior=")],
        "min_count": [({}, "needs unknown=")],
        "unseen": [({"smoothing": "katz"}, "history never seen"), ({"prior": 1.0}, "history never seen")],
    },
    "HiddenMarkovModel": {
        "covariance": [({}, "MultivariateNormal"), ({"emission": sf.Mixture(sf.Normal(), 2)}, "MultivariateNormal")],
        "estimate": [({}, "without a prior")],
        "variance_floor": [({"emission": sf.Categorical()}, "symbols have no variance")],
    },
    "ChainCRF": {
        **{
            name: [({}, "one of stochastic updates"), ({"solver": "lbfgs"}, "one of stochastic updates")]
            for name in ("step_size", "batch_size", "average", "shuffle", "expectations", "n_samples", "n_sweeps")
        },
        "decay": [({}, "stochastic updates"), ({**SGD, "step_size": lambda number: 0.1}, "says every step itself")],
        "patience": [({}, "no examples to watch")],
    },
    "GraphCRF": {
        **{
            name: [({}, "one of stochastic updates"), ({"solver": "newton"}, "one of stochastic updates")]
            for name in ("step_size", "batch_size", "average", "shuffle", "expectations", "n_samples", "n_sweeps")
        },
        "decay": [({}, "stochastic updates"), ({**SGD, "step_size": [0.1, 0.2, 0.3]}, "says every step itself")],
        "max_cells": [({"inference": "loopy"}, "no graph is taken exactly")],
        "patience": [({}, "no examples to watch")],
    },
}
for _of_updates in ("ChainCRF", "GraphCRF"):
    REFUSED[_of_updates]["n_samples"].append(({**SGD, "expectations": "exact"}, "expectations= are exact"))
    REFUSED[_of_updates]["n_sweeps"].append(({**SGD, "expectations": "sampled"}, "not those of Gibbs sampling"))

#: A plain fit of each model.
FITS: dict[str, Callable[..., Any]] = {
    "BayesianNetwork": network(),
    "MarkovNetwork": field(),
    "GaussianGraph": graph,
    "MarkovChain": chain(),
    "HiddenMarkovModel": hmm(data=STEPS),
    "ChainCRF": tagger(),
    "GraphCRF": labeller,
}


def _twice(model: Any, X: Any, y: Any) -> Any:
    return np.asarray(model.fit(X, y).fit(X, y).weights_)


def same(plain: Any, changed: Any) -> bool:
    if isinstance(plain, str) or isinstance(changed, str):
        return isinstance(plain, str) and isinstance(changed, str) and plain == changed
    if plain is None or changed is None:
        return plain is changed
    left, right = np.asarray(plain, dtype=float), np.asarray(changed, dtype=float)
    return left.shape == right.shape and np.array_equal(left, right, equal_nan=True)


def outcome_of(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (sf.DataError, sf.EstimateError) as error:
        return str(error)


@pytest.mark.parametrize("model", EFFECTS)
def test_every_option_is_in_a_table(model: str) -> None:
    options = set(inspect.signature(getattr(sf, model).__init__).parameters) - {"self"}
    assert options == EFFECTS[model].keys() | ANY_FIT & options
    assert REFUSED[model].keys() <= EFFECTS[model].keys()
    declared = {option for option, _, _ in getattr(sf, model)._idle}
    assert declared <= REFUSED[model].keys()


@pytest.mark.parametrize(("model", "option"), [(model, option) for model in EFFECTS for option in EFFECTS[model]])
def test_an_option_has_an_effect(model: str, option: str) -> None:
    value, others, read = EFFECTS[model][option]
    plain, changed = outcome_of(lambda: read(**others)), outcome_of(lambda: read(**{**others, option: value}))
    assert not same(plain, changed)


@pytest.mark.parametrize(
    ("model", "option", "others", "words"),
    [(m, o, others, words) for m in REFUSED for o in REFUSED[m] for others, words in REFUSED[m][o]],
)
def test_an_option_without_effect_is_an_error(model: str, option: str, others: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        FITS[model](**{**others, option: EFFECTS[model][option][0]})


@pytest.mark.parametrize("model", ["ChainCRF", "GraphCRF"])
def test_chains_of_gibbs_sampling_are_as_many_as_samples(model: str) -> None:
    fit, options = FITS[model], {**SGD, "expectations": "gibbs"}
    assert not same(fit(**options), fit(**options, n_samples=1))


def test_one_variance_of_all_states_is_for_normal_distributions_alone() -> None:
    apart, tied = (hmm(lambda model: model.n_params_)(covariance=shape) for shape in ("full", "tied"))
    assert tied == apart - 1
    with pytest.raises(sf.OptionError, match="no state emits one"):
        hmm(data=[0, 3, 1, 7, 2])(covariance="tied", emission=sf.Poisson())


@pytest.mark.parametrize("model", FITS)
def test_defaults_are_never_refused(model: str) -> None:
    defaults = inspect.signature(getattr(sf, model).__init__).parameters.values()
    spelled = {p.name: p.default for p in defaults if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}
    spelled.pop("emission", None)
    FITS[model](**({**spelled, "prior": RIDGE} if model.endswith("CRF") else spelled))


FAMILIES: dict[str, Any] = {
    "Bernoulli": [0, 1, 1],
    "Categorical": ["a", "b", "a"],
    "Exponential": [0.5, 1.5],
    "Geometric": [0, 1, 2],
    "NegativeBinomial": [0, 3, 2],
    "Normal": [0.5, 1.0, 2.5],
    "Poisson": [0, 1, 4],
    "MultivariateNormal": REALS[:, :2],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_estimate_of_a_family_needs_a_prior(family: str) -> None:
    given = {"size": 2.0} if family == "NegativeBinomial" else {}
    for estimate in ("map", "mean"):
        with pytest.raises(sf.OptionError, match="needs a prior="):
            getattr(sf, family)(**given, estimate=estimate).fit(FAMILIES[family])


NET = network(read=lambda net: net)()
RATE = sf.NormalInverseGamma(2.0, 1.0, 1.0, 0.0)

#: Of methods, smoothing, mixtures and emissions: calls with an idle option, and words of the error.
IDLE: dict[str, tuple[Callable[[], Any], str]] = {
    "samples of an exact answer": (lambda: NET.query("a", n=50), "n= is the number of samples"),
    "samples of another engine": (lambda: NET.query("a", engine="enumeration", n=50), "engine='sampling'"),
    "buckets of a weight that is given": (lambda: sf.Interpolation(0.4, buckets=(1, 5)), "buckets=.* has no effect"),
    "buckets of weights by length": (lambda: sf.Interpolation((0.4, 0.2), buckets=(1, 5)), "buckets=.* has no effect"),
    "how many discounts beside them": (lambda: sf.KneserNey(0.5, modified=False), "modified=False has no effect"),
    "weights of what is to be learned": (
        lambda: sf.Mixture(sf.Normal(), 2, weights=[0.2, 0.8]),
        "weights= has no effect on components that are to be learned",
    ),
    "a number of given components": (lambda: sf.Mixture([sf.Normal(0.0, 1.0)], 1), "n=1 has no effect"),
    "an estimate without a prior": (lambda: hmm()(emission=sf.Normal(estimate="map")), "needs a prior="),
    "the maximum beside a prior": (
        lambda: hmm()(emission=sf.Normal(estimate="mle", prior=RATE)),  # type: ignore[arg-type]
        "takes none",
    ),
    "the mean of a density that EM learns": (
        lambda: hmm()(emission=sf.Normal(estimate="mean", prior=RATE)),
        "EM climbs to the mode",
    ),
    "an estimate inside a mixture": (
        lambda: hmm()(emission=sf.Mixture(sf.Normal(estimate="map"), 2)),
        "needs a prior=",
    ),
    "held-out text of what learns nothing from it": (
        lambda: sf.MarkovChain().fit(TEXTS, held_out=TEXTS),
        "held_out= is given",
    ),
    "exposure without a logarithm": (lambda: sf.GLM().fit(REALS, REALS[:, 0], exposure=np.ones(30)), "log link"),
    "rows of a covariance beside rows": (
        lambda: sf.GaussianGraph(SQUARE).fit(REALS, columns=range(4), n=9),
        "without covariance=",
    ),
    "columns of sentences in lists": (
        lambda: sf.ChainCRF(prior=RIDGE).fit(SENTENCES, TAGS, columns=["w"]),
        "name columns of a table",
    ),
    "classes of a network without a target": (
        lambda: sf.BayesianNetwork([("a", "b")], states={"a": [0, 1], "b": [0, 1]}).partial_fit(ROWS, classes=[0, 1]),
        "has no target=",
    ),
}


@pytest.mark.parametrize("case", IDLE)
def test_what_a_call_could_not_use_is_an_error(case: str) -> None:
    call, words = IDLE[case]
    with pytest.raises(sf.OptionError, match=words):
        call()


def test_samples_are_counted_where_they_are_drawn() -> None:
    answers = [NET.query("a", engine="sampling", n=n, random_state=0) for n in (50, 5_000)]
    assert answers[0].effective_sample_size < answers[1].effective_sample_size
