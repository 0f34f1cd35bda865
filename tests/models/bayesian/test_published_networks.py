"""Published figures on real data, read in place; skipped by name where the data folder is absent."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import suffice as sf

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the folder shared/data is not there")


def figures(part: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "tables" / "expected.json").read_text())[part][name]
    return found


def structure(text: str) -> dict[str, list[str]]:
    """Read ``[A][B|A:C]``."""
    parts = re.findall(r"\[([^]]+)\]", text)
    return {part.partition("|")[0]: [p for p in part.partition("|")[2].split(":") if p] for part in parts}


def rows(name: str) -> dict[str, Any]:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(DATA / "tables" / name, dtype=str, keep_default_na=False)
    return {column: frame[column].to_numpy(dtype=object) for column in frame}


@needs_data
@pytest.mark.parametrize("name", ["asia", "alarm", "learning.test", "lizards"])
def test_scores_of_bnlearn(name: str) -> None:
    expected = figures("bayesnet_fits", name)
    scores, graph, data = (
        expected["scores_bnlearn_convention"],
        structure(expected["structure"]),
        rows(expected["data"]),
    )
    report = sf.BayesianNetwork(graph).fit(data).report_
    assert report.n_params == expected["nparams"]
    assert report.log_likelihood == pytest.approx(scores["loglik"], rel=1e-12)
    assert report.bic_score == pytest.approx(scores["bic"], rel=1e-12)
    assert -report.aic / 2 == pytest.approx(scores["aic"], rel=1e-12)
    for key, prior in (
        ("bde_iss1", {"prior": "bdeu", "equivalent_sample_size": 1}),
        ("bde_iss10", {"prior": "bdeu", "equivalent_sample_size": 10}),
        ("k2", {"prior": "k2"}),
    ):
        fitted = sf.BayesianNetwork(graph, **prior).fit(data)
        assert fitted.report_.log_evidence == pytest.approx(scores[key], rel=1e-12), key


@needs_data
@pytest.mark.parametrize("name", ["asia", "learning.test", "lizards"])
def test_tables_of_bnlearn(name: str) -> None:
    expected = figures("bayesnet_fits", name)
    net = sf.BayesianNetwork(structure(expected["structure"])).fit(rows(expected["data"]))
    for node, entry in expected["mle"].items():
        table = net.table(node)
        labels = [(node, entry["levels"])] + [(p, expected["mle"][p]["levels"]) for p in entry["parents"]]
        numbers = iter(entry["prob_first_index_fastest"])
        for place in sorted(
            ((k, *rest) for k in range(len(entry["levels"])) for rest in _places([len(s) for _, s in labels[1:]])),
            key=lambda codes: tuple(reversed(codes)),
        ):
            where = {n: states[code] for (n, states), code in zip(labels, place, strict=True)}
            assert table.at(where) == pytest.approx(next(numbers), abs=1e-12)


def _places(cards: list[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for card in cards:
        found = [(*place, code) for place in found for code in range(card)]
    return found


@needs_data
def test_scores_of_the_titanic() -> None:
    expected = figures("misc", "titanic_train_scores")["published"]
    data = {
        name: values for name, values in rows("titanic_train.csv.gz").items() if name in ("Survived", "Sex", "Pclass")
    }
    graph = {"Survived": ["Sex", "Pclass"]}
    report = sf.BayesianNetwork(graph).fit(data).report_
    assert report.bic_score == pytest.approx(expected["bic"], rel=1e-12)
    bdeu = sf.BayesianNetwork(graph, prior="bdeu", equivalent_sample_size=25).fit(data).report_
    assert bdeu.log_evidence == pytest.approx(expected["bdeu_ess25"], rel=1e-12)


@needs_data
@pytest.mark.parametrize(
    ("name", "classes", "items"), [("values", 2, "ABCD"), ("carcinoma", 2, "ABCDEFG"), ("carcinoma", 3, "ABCDEFG")]
)
def test_latent_classes(name: str, classes: int, items: str) -> None:
    expected = figures("latent_class", name)
    data = {column: values for column, values in rows(expected["data"]).items() if column in items}
    net = sf.BayesianNetwork(
        [("class", item) for item in items], hidden={"class": classes}, n_init=10, max_iter=20_000, tolerance=1e-8
    ).fit(data)
    published = next(fit for fit in expected["recomputed"] if fit["nclass"] == classes)
    assert net.report_.log_likelihood == pytest.approx(published["loglik"], abs=2e-5)
    assert net.report_.n_params == published["npar"]


@needs_data
@pytest.mark.parametrize("name", ["alarm", "asia", "cancer", "child", "hailfinder", "sachs", "survey", "win95pts"])
def test_repository_networks_load_with_their_published_size(name: str) -> None:
    expected = json.loads((DATA / "bn" / "expected.json").read_text())["files"][f"{name}.bif.gz"]
    net = sf.read(DATA / "bn" / f"{name}.bif.gz")
    assert [len(net.nodes), len(net.edges), net.n_params_] == expected["published_nodes_arcs_params"]


@needs_data
def test_em_on_alarm_is_nearer_to_the_truth_than_leaving_rows_out_or_filling_in_modes() -> None:
    import numpy as np

    truth = sf.read(DATA / "bn" / "alarm.bif.gz")
    rng = np.random.default_rng(0)
    drawn = truth.sample(2_000, random_state=1)
    gappy = {n: np.where(rng.random(2_000) < 0.2, None, values) for n, values in drawn.items()}
    states = {node: list(truth.states(node)) for node in truth.nodes}
    fresh = truth.sample(20_000, random_state=2)

    def divergence(data: dict[Any, Any]) -> float:
        """KL(truth || fit) by many rows of the truth."""
        net = sf.BayesianNetwork(truth, states=states, prior=1.0, tolerance=1e-3).fit(data)
        return float(np.mean(truth.score_samples(fresh) - net.score_samples(fresh)))

    full = np.all([[v is not None for v in values] for values in gappy.values()], axis=0)
    modes = {n: Counter(value for value in v if value is not None).most_common(1)[0][0] for n, v in gappy.items()}
    filled = {n: [modes[n] if value is None else value for value in v] for n, v in gappy.items()}
    em = divergence(gappy)
    assert em < divergence({n: v[full] for n, v in gappy.items()})
    assert em < divergence(filled)
