"""CRFsuite through python-crfsuite; it has one thread."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any

import pycrfsuite

from benchmarks.contender import Data, Run
from benchmarks.problems.crf import C2, sequences


@dataclass(frozen=True)
class Tagger:
    """A model as the bytes of its file, so that it can be sent to another process."""

    content: bytes

    def __call__(self, X: Any) -> list[list[str]]:
        """Labels of sequences."""
        tagger = pycrfsuite.Tagger()
        tagger.open_inmemory(self.content)
        return [tagger.tag(sequence) for sequence in X]


def fit(data: Data, *, steps: int) -> Run:
    """The sequences go to CRFsuite, then it trains; both are timed, as both are in a fit of ours."""
    X, y = sequences(data, "train")

    def run() -> object:
        trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
        for sequence, labels in zip(X, y, strict=True):
            trainer.append(sequence, labels)
        trainer.set_params({"c1": 0.0, "c2": C2, "max_iterations": steps})
        handle, path = tempfile.mkstemp()
        os.close(handle)
        try:
            trainer.train(path)
            last = trainer.logparser.last_iteration
            with open(path, "rb") as file:
                return float(last["loss"]), int(last["num"]), Tagger(file.read())
        finally:
            os.unlink(path)

    return run
