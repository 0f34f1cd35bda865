"""A chain CRF for the chunks of CoNLL-2000: iterations of L-BFGS, and the way to where CRFsuite ends by itself."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contender import Contender, Data

NAME = "crf"
#: Sentences of the training set.
ROWS = 8936
SIZES = (20, 50, 400, 8936)
REPEATS = 1
#: Iterations of L-BFGS, and CRFsuite's weight of the squared norm: a prior with variance 1 / (2 c2).
STEPS, C2 = 50, 1.0
#: More iterations than either needs to end by itself.
MOST = 2000
FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sequences"

_OURS = "benchmarks.rivals.crf_with_suffice"
_CRFSUITE = "benchmarks.rivals.crf_with_crfsuite"
_WAPITI = "benchmarks.rivals.crf_with_wapiti"


CONTENDERS = (
    Contender("python-crfsuite", _CRFSUITE, "fit", {"steps": STEPS}, "pycrfsuite"),
    Contender("suffice", _OURS, "fit", {"steps": STEPS}),
    Contender(
        "wapiti, weights for all labels",
        _WAPITI,
        "fit",
        {"steps": STEPS, "threads": 1},
        "wapiti",
        once=True,
        work="all",
    ),
    Contender(
        "suffice, weights for all labels", _OURS, "fit", {"steps": STEPS, "all_weights": True}, once=True, work="all"
    ),
    Contender(
        "python-crfsuite, to its end", _CRFSUITE, "fit", {"steps": MOST}, "pycrfsuite", once=True, work="to the end"
    ),
    Contender("suffice, to where CRFsuite ends", _OURS, "reach", once=True, work="to the end"),
)


def cases() -> Iterator[Any]:
    """This module, where the sentences are at hand."""
    import sys

    if (FOLDER / "conll2000.train.txt.gz").exists():
        yield sys.modules[__name__]
    else:
        print("crf: conll2000.train.txt.gz is not there; left out")


def title(rows: int) -> str:
    return f"A chain CRF of {rows:,} sentences of CoNLL-2000, {STEPS} iterations of L-BFGS, c2 = {C2}"


def make(rows: int, seed: int) -> Data:
    """Columns of tokens for training and test, where sentences begin, and the objective that CRFsuite ends at.

    The sentences of the training set are drawn anew, without replacement.
    """
    found: dict[str, Any] = {}
    for part, most in (("train", rows), ("test", None)):
        lines = gzip.open(FOLDER / f"conll2000.{part}.txt.gz", "rt").read().split("\n\n")
        sentences = [[line.split() for line in text.splitlines()] for text in lines if text.strip()]
        if most is not None:
            order = np.random.default_rng(seed).permutation(len(sentences))[:most]
            sentences = [sentences[at] for at in order.tolist()]
        tokens = np.array(list(itertools.chain.from_iterable(sentences)))
        offsets = np.cumsum([0, *(len(sentence) for sentence in sentences)])
        found |= {f"{part}_tokens": tokens, f"{part}_offsets": offsets}
    return {**found, "target": np.array(_target(found))}


def _target(data: Data) -> float:
    """CRFsuite's objective at its own end; NaN where it is not installed."""
    try:
        from benchmarks.rivals.crf_with_crfsuite import fit
    except ImportError:
        return float("nan")
    return float(fit(data, steps=MOST)()[0])


def sequences(data: Data, part: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Names of features of each token, and its label: the word, its tag, both neighbours, and a bias."""
    tokens, offsets = data[f"{part}_tokens"].tolist(), data[f"{part}_offsets"].tolist()
    X, y = [], []
    for first, last in itertools.pairwise(offsets):
        sentence = tokens[first:last]
        steps = []
        for t, (word, tag, _) in enumerate(sentence):
            names = ["b", f"w0={word}", f"p0={tag}"]
            names += [f"w-1={sentence[t - 1][0]}", f"p-1={sentence[t - 1][1]}"] if t else ["BOS"]
            names += [f"w+1={sentence[t + 1][0]}", f"p+1={sentence[t + 1][1]}"] if t + 1 < len(sentence) else ["EOS"]
            steps.append(names)
        X.append(steps)
        y.append([label for _, _, label in sentence])
    return X, y


def judge(data: Data) -> Callable[[str, Any], str]:
    """The objective, the iterations, and how well the labels of the test set are predicted."""
    from suffice.models.conditional_field.evaluation import evaluate

    X, y = sequences(data, "test")

    def verdict(_: str, answer: Any) -> str:
        objective, steps, predict = answer
        found = evaluate(y, predict(X))
        return f"objective {objective:.2f} after {steps}, accuracy {found.accuracy:.4f}, chunk F1 {found.span_f1:.4f}"

    return verdict
