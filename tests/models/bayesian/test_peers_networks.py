"""Fits and queries agree with pgmpy and pyAgrum, by label, where these are right; skipped by name without them.

The networks are drawn with a fixed seed and go through our own files; real ones join where the data folder is present.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from network_files import DATA, Found, read_by_pyagrum
from suffice.domain import Domain, Variable

NETWORKS = ("drawn", "asia", "alarm")


@functools.cache
def network(name: str) -> sf.BayesianNetwork:
    """A network drawn at random with up to three parents, or a real one."""
    if name != "drawn":
        if not (DATA / "bn" / f"{name}.bif.gz").exists():
            pytest.skip(f"shared data: {name} is not here")
        found: sf.BayesianNetwork = sf.read(DATA / "bn" / f"{name}.bif.gz")
        return found
    rng = np.random.default_rng(11)
    names = [f"n{k}" for k in range(12)]
    domain = Domain([Variable.discrete(n, [f"s{k}" for k in rng.permutation(2 + i % 3)]) for i, n in enumerate(names)])
    parents = {n: rng.permutation(names[:i])[: rng.integers(0, 4)].tolist() for i, n in enumerate(names)}
    tables = {
        n: rng.dirichlet(np.full(domain[n].card, 2.0), size=domain.shape(p)).reshape(domain.shape((*p, n)))
        for n, p in parents.items()
    }
    return sf.BayesianNetwork.from_tables(domain, parents, tables)


def frame(name: str, rows: int) -> Any:
    """Rows of a network as a data frame of text."""
    pandas = pytest.importorskip("pandas")
    drawn = network(name).sample(rows, random_state=5)
    return pandas.DataFrame({node: values.astype(str) for node, values in drawn.items()}, dtype=object)


def declared(name: str) -> dict[Any, list[Any]]:
    return {node: list(network(name).states(node)) for node in network(name).nodes}


def check_tables(net: sf.BayesianNetwork, found: Found, tolerance: float) -> None:
    """Every probability by label."""
    assert set(found) == set(net.nodes)
    for node, (parents, states, values) in found.items():
        axes = [Variable.discrete(n, states[n]) for n in (*parents, node)]
        theirs = sf.Table(Domain(axes), values)
        mine = net.table(node)
        aligned = (mine * 0.0 + theirs).transpose(mine.variables).values  # laid out by the labels of ours
        assert np.abs(aligned - mine.values).max() <= tolerance, node


# -- pgmpy -----------------------------------------------------------------------------------------------------------


def pgmpy_model(name: str) -> Any:
    models = pytest.importorskip("pgmpy.models")
    model = models.DiscreteBayesianNetwork()
    model.add_nodes_from(network(name).nodes)
    model.add_edges_from(network(name).edges)
    return model


def pgmpy_tables(model: Any) -> Found:
    found: Found = {}
    for cpd in model.get_cpds():
        node, *parents = cpd.variables
        found[node] = (list(parents), dict(cpd.state_names), np.moveaxis(np.asarray(cpd.values), 0, -1))
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_maximum_likelihood_equals_pgmpy(name: str) -> None:
    """Unseen parent configurations are uniform in both."""
    estimators = pytest.importorskip("pgmpy.parameter_estimator")
    data = frame(name, 3_000)
    model = pgmpy_model(name).fit(data, estimator=estimators.DiscreteMLE(state_names=declared(name)))
    net = sf.BayesianNetwork(network(name), states=declared(name)).fit(data)
    check_tables(net, pgmpy_tables(model), 1e-14)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("prior", "theirs", "size"), [("bdeu", "BDeu", 7.5), ("k2", "K2", 1.0)])
def test_posterior_means_equal_pgmpy(name: str, prior: str, theirs: str, size: float) -> None:
    estimators = pytest.importorskip("pgmpy.parameter_estimator")
    data = frame(name, 1_000)
    estimator = estimators.DiscreteBayesianEstimator(
        state_names=declared(name), prior_type=theirs, equivalent_sample_size=size
    )
    model = pgmpy_model(name).fit(data, estimator=estimator)
    weight: dict[str, Any] = {"equivalent_sample_size": size} if prior == "bdeu" else {}
    net = sf.BayesianNetwork(network(name), states=declared(name), prior=prior, **weight).fit(data)
    check_tables(net, pgmpy_tables(model), 1e-14)


@pytest.mark.parametrize("name", NETWORKS)
def test_weighted_rows_equal_pgmpy(name: str) -> None:
    estimators = pytest.importorskip("pgmpy.parameter_estimator")
    data = frame(name, 1_000)
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(data))
    estimator = estimators.DiscreteMLE(state_names=declared(name))
    model = pgmpy_model(name).fit(data, estimator=estimator, sample_weight=weights)
    net = sf.BayesianNetwork(network(name), states=declared(name)).fit(data, sample_weight=weights)
    check_tables(net, pgmpy_tables(model), 1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_queries_equal_variable_elimination(name: str, tmp_path: Path) -> None:
    inference = pytest.importorskip("pgmpy.inference")
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = network(name)
    net.write(tmp_path / "net.bifxml")
    engine = inference.VariableElimination(readwrite.XMLBIFReader(str(tmp_path / "net.bifxml")).get_model())
    row = {node: values[0] for node, values in net.sample(1, random_state=3).items()}
    evidence = {node: row[node] for node in net.nodes[-1:-6:-2]}
    free = [node for node in net.nodes if node not in evidence]
    for asked in ([free[0]], [free[1], free[-1]], free[2:5]):
        theirs = engine.query(asked, evidence=evidence, show_progress=False)
        states = [Variable.discrete(n, theirs.state_names[n]) for n in theirs.variables]
        assert net.query(asked, given=evidence).allclose(
            sf.Table(Domain(states), theirs.values), rtol=1e-9, atol=1e-14
        ), asked


@pytest.mark.parametrize("name", ["drawn", "asia"])
def test_the_most_probable_states_equal_variable_elimination(name: str, tmp_path: Path) -> None:
    """Compared by probability, as either of two equal maxima may be given."""
    inference = pytest.importorskip("pgmpy.inference")
    readwrite = pytest.importorskip("pgmpy.readwrite")
    net = network(name)
    net.write(tmp_path / "net.bifxml")
    engine = inference.VariableElimination(readwrite.XMLBIFReader(str(tmp_path / "net.bifxml")).get_model())
    evidence = {node: values[0] for node, values in net.sample(1, random_state=8).items() if node in net.nodes[::3]}
    free = [node for node in net.nodes if node not in evidence]
    best = engine.map_query(free, evidence=evidence, show_progress=False)
    mine: dict[Any, list[Any]] = {node: [state] for node, state in net.map_query(evidence).items()}
    theirs: dict[Any, list[Any]] = {node: [state] for node, state in {**best, **evidence}.items()}
    assert {node: state for node, [state] in mine.items() if node in evidence} == evidence
    assert net.score_samples(mine)[0] == pytest.approx(net.score_samples(theirs)[0], rel=1e-9)


# -- pyAgrum ---------------------------------------------------------------------------------------------------------


def pyagrum_model(name: str, path: Path) -> Any:
    """Through our own file; XMLBIF, because pyAgrum holds numbers from BIF in single precision."""
    gum = pytest.importorskip("pyagrum")
    network(name).write(path)
    return gum.loadBN(str(path))


def pyagrum_learned(name: str, path: Path, data: Any, prior: tuple[str, float] | None) -> Any:
    gum = pytest.importorskip("pyagrum")
    template = pyagrum_model(name, path)
    learner = gum.BNLearner(data, template)
    if prior is None:
        learner.useNoPrior()
    else:
        getattr(learner, prior[0])(prior[1])
    return learner.learnParameters(template.dag())


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("theirs", "prior", "number"), [("useBDeuPrior", "bdeu", 7.5), ("useSmoothingPrior", 1.5, 1.5)]
)
def test_posterior_means_equal_pyagrum(name: str, theirs: str, prior: Any, number: float, tmp_path: Path) -> None:
    data = frame(name, 1_000)
    learned = pyagrum_learned(name, tmp_path / "net.bifxml", data, (theirs, number))
    weight: dict[str, Any] = {"equivalent_sample_size": number} if prior == "bdeu" else {}
    net = sf.BayesianNetwork(network(name), states=declared(name), prior=prior, **weight)
    check_tables(net.fit(data), tables_in_memory(learned), 1e-14)


@pytest.mark.parametrize("name", ["drawn"])
def test_maximum_likelihood_equals_pyagrum(name: str, tmp_path: Path) -> None:
    """Where every parent configuration occurs; pyAgrum has no estimate otherwise."""
    data = frame(name, 20_000)
    net = sf.BayesianNetwork(network(name), states=declared(name), unseen="raise").fit(data)
    check_tables(net, tables_in_memory(pyagrum_learned(name, tmp_path / "net.bifxml", data, None)), 1e-14)


def tables_in_memory(model: Any) -> Found:
    found: Found = {}
    for node in model.names():
        table = model.cpt(node)
        axes = list(reversed(table.names))  # The first variable of a table is its fastest, the last axis of the array.
        values = np.moveaxis(np.asarray(table.toarray()), axes.index(node), -1)
        states = {axis: list(model.variable(axis).labels()) for axis in axes}
        found[node] = ([axis for axis in axes if axis != node], states, values)
    return found


@pytest.mark.parametrize("name", NETWORKS)
def test_marginals_equal_lazy_propagation(name: str, tmp_path: Path) -> None:
    gum = pytest.importorskip("pyagrum")
    net = network(name)
    model = pyagrum_model(name, tmp_path / "net.bifxml")
    check_tables(net, read_by_pyagrum(tmp_path / "net.bifxml"), 0.0)
    drawn = net.sample(3, random_state=8)
    for k in range(3):
        evidence = {node: drawn[node][k] for node in net.nodes[k::5]}
        engine = gum.LazyPropagation(model)
        engine.setEvidence(evidence)
        engine.makeInference()
        mine = net.marginals(evidence)
        for node in net.nodes:
            posterior = engine.posterior(node)
            labels = model.variable(node).labels()
            theirs = dict(zip(labels, np.asarray(posterior.toarray()).tolist(), strict=True))
            found = [mine[node].at({node: label}) for label in labels]
            assert found == pytest.approx(list(theirs.values()), rel=1e-9, abs=1e-14), node
        assert net.log_probability(evidence) == pytest.approx(np.log(engine.evidenceProbability()), rel=1e-9)
