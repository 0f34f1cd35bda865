"""Runs of words counted by suffice."""

from __future__ import annotations

from benchmarks.contender import Data, Run


def count(data: Data, order: int) -> Run:
    """One pass over the file; the answer is a summary."""
    import suffice as sf

    path = str(data["path"])
    model = sf.MarkovChain(order, bounds=True)
    sf.summarize(model, iter([["a", "b"]]))

    def run() -> tuple[int, int, int]:
        summary = sf.summarize(model, path)
        _, values = next(iter(summary.answers.values())).items()  # type: ignore[attr-defined]
        return len(values), int(values.sum()), int(values.max())

    return run


def smooth(data: Data, order: int) -> Run:
    """Counts, modified Kneser-Ney and the report."""
    import suffice as sf

    path = str(data["path"])

    def run() -> None:
        sf.MarkovChain(order, bounds=True, smoothing=sf.KneserNey(), unknown="<unk>").fit(path)

    return run
