"""How often what the library chooses is near the best of its own ways: ``python -m benchmarks.choice --seed 1``.

Every instance is fitted in all ways and in that which the library chooses, in turns and in this process: the first
fits load what is needed, then the least CPU time of the repeats counts. A way takes part where it is allowed and where
its objective comes as near to the best as is asked.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from dataclasses import dataclass

from benchmarks.choice.zoo import KINDS, Instance, drawn
from suffice.errors import SufficeError

#: Nats a row that a way may lose to the best and still take part.
NEAR = 1e-6
#: No way is waited for longer than so many times the seconds that the choice takes.
PATIENCE = 20.0


@dataclass(frozen=True)
class Verdict:
    """CPU seconds of what was chosen and of the best way; ratio is infinite where the choice is not near the best."""

    title: str
    chosen: float
    best: float
    way: str
    near: bool

    @property
    def ratio(self) -> float:
        return self.chosen / self.best if self.near else math.inf


def judge(instance: Instance, repeats: int) -> Verdict:
    """Fit in all ways and compare."""
    seconds: dict[str, float] = {}
    objectives: dict[str, float] = {}
    ways = ("auto", *instance.ways)
    for turn in range(repeats + 1):
        # Each in turn begins: what follows a slow way finds its own data gone from the cache.
        for way in ways if not turn else (*ways[turn % len(ways) :], *ways[: turn % len(ways)]):
            if turn and (way not in objectives or seconds[way] > PATIENCE * seconds["auto"]):
                continue
            start = time.process_time()
            try:
                objectives[way] = instance.fit(way)
            except SufficeError:
                continue
            spent = time.process_time() - start
            seconds[way] = spent if turn <= 1 else min(seconds[way], spent)
    top = max(objectives.values())
    near = [way for way, value in objectives.items() if value >= top - NEAR * instance.rows]
    best = min((way for way in near), key=seconds.__getitem__)
    return Verdict(instance.title, seconds["auto"], seconds[best], best, "auto" in near)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice", description=__doc__)
    parser.add_argument("--seed", type=int, required=True, help="what the zoo is drawn from")
    parser.add_argument("--instances", type=int, default=20, help="of each kind")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each way that count")
    parser.add_argument("--only", metavar="WORD", action="append", default=[], help="kinds with this in their name")
    options = parser.parse_args()
    lines = []
    for kind in KINDS:
        if options.only and not any(word in kind for word in options.only):
            continue
        verdicts = []
        for instance in drawn(kind, options.seed, options.instances):
            verdicts.append(judge(instance, options.repeats))
            if verdicts[-1].ratio > 1.3:
                print(f"{kind}, {instance.title}: {_ratio(verdicts[-1])}", flush=True)
        ratios = [verdict.ratio for verdict in verdicts]
        within = [sum(ratio <= most for ratio in ratios) / len(ratios) for most in (1.3, 3.0)]
        lines.append(f"| {kind} | {len(ratios)} | {within[0]:.0%} | {within[1]:.0%} | {max(ratios):.2f} |")
        print(lines[-1], flush=True)
    head = ["| | instances | within 1.3 of the best | within 3 | worst |", "|---|---:|---:|---:|---:|"]
    print("", f"Seed {options.seed}, CPU time, minimum of {options.repeats}:", "", *head, *lines, sep="\n")


def _ratio(verdict: Verdict) -> str:
    times = f"{1e3 * verdict.chosen:.2f} ms, {verdict.way} {1e3 * verdict.best:.2f} ms"
    return f"{verdict.ratio:.2f} ({times})" if verdict.near else f"not near the best ({times})"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
