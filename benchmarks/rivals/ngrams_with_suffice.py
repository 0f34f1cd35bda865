"""Runs of words counted by suffice."""

from __future__ import annotations

import suffice as sf
from benchmarks.contender import Data, Run


def count(data: Data, order: int) -> Run:
    """One pass over the file; the answer is a summary."""
    path = str(data["path"])
    model = sf.MarkovChain(order, bounds=True)

    def run() -> tuple[int, int, int]:
        summary = sf.summarize(model, path)
        _, values = next(iter(summary.answers.values())).items()  # type: ignore[attr-defined]
        return len(values), int(values.sum()), int(values.max())

    return run


def smooth(data: Data, order: int, by: str = "Kneser-Ney") -> Run:
    """Counts, modified Kneser-Ney or learned interpolation, and the report."""
    path = str(data["path"])

    smoothing = sf.KneserNey() if by == "Kneser-Ney" else sf.Interpolation()

    def run() -> None:
        sf.MarkovChain(order, bounds=True, smoothing=smoothing, unknown="<unk>").fit(path).report_  # noqa: B018

    return run
