"""Runs of words counted by NLTK."""

from __future__ import annotations

from benchmarks.contender import Data, Run


def count(data: Data, order: int) -> Run:
    """An `NgramCounter` of the runs of one length."""
    from nltk.lm.counter import NgramCounter
    from nltk.util import ngrams

    path = str(data["path"])
    padding = {
        "pad_left": True,
        "pad_right": False,
        "left_pad_symbol": "<s>",
    }

    def run() -> tuple[int, int, int]:
        with open(path, encoding="utf-8") as stream:
            counter = NgramCounter(ngrams([*line.split(), "</s>"], order + 1, **padding) for line in stream)
        found = [number for history in counter[order + 1].values() for number in history.values()]
        return len(found), sum(found), max(found)

    return run


def smooth(data: Data, order: int) -> Run:
    """What NLTK's Kneser-Ney asks of a text: the runs of every length; probabilities are left for each question."""
    from nltk.lm import KneserNeyInterpolated
    from nltk.lm.preprocessing import padded_everygrams

    path = str(data["path"])

    def run() -> None:
        model = KneserNeyInterpolated(order + 1)
        with open(path, encoding="utf-8") as stream:
            words = {word for line in stream for word in line.split()}
            stream.seek(0)
            model.fit((padded_everygrams(order + 1, line.split()) for line in stream), [*words, "<s>", "</s>"])

    return run
