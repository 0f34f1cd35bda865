"""Chain CRFs beside CRFsuite, and published optima of the chunking data where those are at hand."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "sequences"


def sentences(name: str) -> list[list[list[str]]]:
    """Sentences of (word, tag, label)."""
    with gzip.open(FOLDER / f"{name}.txt.gz", "rt") as file:
        texts = file.read().split("\n\n")
    return [[line.split() for line in text.splitlines()] for text in texts if text.strip()]


def features(sentence: list[list[str]]) -> list[list[str]]:
    """A bias, word and tag of the token and of its neighbours, or the edge of the sentence."""
    found = []
    for t, (word, tag, _) in enumerate(sentence):
        names = ["b", f"w0={word}", f"p0={tag}"]
        names += [f"w-1={sentence[t - 1][0]}", f"p-1={sentence[t - 1][1]}"] if t else ["BOS"]
        names += [f"w+1={sentence[t + 1][0]}", f"p+1={sentence[t + 1][1]}"] if t + 1 < len(sentence) else ["EOS"]
        found.append(names)
    return found


def chunking(part: str) -> tuple[Any, Any]:
    if not FOLDER.exists():
        pytest.skip("the chunking data are not at hand")
    found = sentences(f"crfpp_chunking.{part}")
    return [features(sentence) for sentence in found], [[token[2] for token in sentence] for sentence in found]


@pytest.mark.parametrize("c2", [1.0, 0.1])
def test_the_optimum_of_the_chunking_data(c2: float) -> None:
    """The sum of negative log-likelihoods plus c2 times the squared norm, pairs seen in training only."""
    X, y = chunking("train")
    expected = json.loads((FOLDER / "expected.json").read_text())["crf"]["crfpp_chunking"][f"crfpp_chunking_c2_{c2}"]
    model = sf.ChainCRF(prior=sf.Normal(variance=1.0 / (2.0 * c2))).fit(X, y)
    assert len(model.weights_) == expected["n_features"]
    assert -model.report_.objective == pytest.approx(expected["objective_sumNLL_plus_c2_normsq"], abs=1e-6)
    assert np.linalg.norm(model.weights_) == pytest.approx(expected["weight_l2_norm"], rel=1e-5)
    assert model.gradient_norm_ < 1e-5
    found = model.evaluate(*chunking("test"))
    assert found.accuracy == pytest.approx(expected["test_token_accuracy"], abs=2e-4)
    assert found.span_f1 == pytest.approx(expected["test_chunk_f1"], abs=5e-4)


def test_dicts_of_text_give_the_same_optimum() -> None:
    X, y = chunking("train")
    dicts = [[{name.partition("=")[0]: name.partition("=")[2] or True for name in step} for step in x] for x in X[:15]]
    prior = sf.Normal(variance=0.5)
    plain = sf.ChainCRF(prior=prior).fit(X[:15], y[:15])
    assert sf.ChainCRF(prior=prior).fit(dicts, y[:15]).report_.objective == pytest.approx(
        plain.report_.objective, abs=1e-6
    )


def small_problem() -> tuple[list[list[dict[str, Any]]], list[list[str]]]:
    """Random sequences with names, truth values and positive numbers: CRFsuite drops pairs whose sum is negative."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(25):
        length = int(rng.integers(1, 7))
        X.append(
            [
                {"word": f"w{rng.integers(6)}", "size": float(rng.exponential()), "upper": bool(rng.integers(2))}
                for _ in range(length)
            ]
        )
        y.append([str(label) for label in rng.choice(["A", "B", "C"], size=length)])
    return X, y


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("c1", "c2"), [(0.0, 0.5), (0.4, 0.3)])
def test_objective_and_predictions_are_those_of_crfsuite(tmp_path: Path, whole: bool, c1: float, c2: float) -> None:
    crfsuite = pytest.importorskip("pycrfsuite")
    X, y = small_problem()
    trainer = crfsuite.Trainer(algorithm="lbfgs", verbose=False)
    for sequence, labels in zip(X, y, strict=True):
        trainer.append(crfsuite.ItemSequence(sequence), labels)
    trainer.set_params(
        {
            "c1": c1,
            "c2": c2,
            "max_iterations": 2000,
            "epsilon": 1e-10,
            "delta": 1e-14,
            "feature.possible_states": whole,
            "feature.possible_transitions": whole,
        }
    )
    trainer.train(str(tmp_path / "model"))
    loss = float(trainer.logparser.last_iteration["loss"])
    prior: Any = sf.Normal(variance=0.5 / c2)
    prior = (prior, sf.Laplace(scale=1.0 / c1)) if c1 else prior
    model = sf.ChainCRF(prior=prior, all_possible_states=whole, all_possible_transitions=whole, tolerance=1e-8).fit(
        X, y
    )
    assert -model.report_.objective <= loss + 1e-5  # Never worse.
    assert -model.report_.objective == pytest.approx(loss, rel=1e-5)
    tagger = crfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    marginals = model.predict_marginals(X)
    for s, sequence in enumerate(X):
        tagger.set(crfsuite.ItemSequence(sequence))
        for t in range(len(sequence)):
            for label in model.labels_:
                assert marginals[s][t][label] == pytest.approx(tagger.marginal(label, t), abs=2e-3)
