"""Damage files and rows for as long as wanted, and keep what the library does not refuse by an error of its own.

    python tools/fuzz_everything.py --seconds 600 --seed 7            all targets in turn
    python tools/fuzz_everything.py --seconds 60 --target native      one of them

What fails is written to `tests/fuzz/corpus/<target>/`, where the tests find it again. The exit code is 1 if anything
failed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

FUZZ = Path(__file__).resolve().parent.parent / "tests" / "fuzz"
#: Inputs of one target before the next one has its turn.
TURN = 50


def main() -> int:
    """Run until the time is over; say what was tried and what failed."""
    sys.path[:0] = [str(FUZZ.parent), str(FUZZ.parent.parent / "src")]
    from fuzz import fuzzing

    parser = argparse.ArgumentParser(description="Damage files and rows, and keep what is neither refused nor works.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--target", action="append", choices=sorted(fuzzing.TARGETS))
    asked = parser.parse_args()
    names = asked.target or list(fuzzing.TARGETS)
    chances = {name: random.Random(f"{asked.seed} {name}") for name in names}
    tried: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    ends = time.monotonic() + asked.seconds
    for turn in count():
        name = names[turn % len(names)]
        target = fuzzing.TARGETS[name]
        for _ in range(TURN):
            if time.monotonic() > ends:
                return _said(tried, failed)
            data = target.make(chances[name])
            tried[name] += 1
            try:
                target.check(data)
            except fuzzing.FailedError as error:
                words = f"{name}: {str(error)[:200]}"
                if words not in failed:
                    print(f"{words}\n    {fuzzing.save(name, target.ending, data)}", flush=True)
                failed[words] += 1
    return 0


def _said(tried: Counter[str], failed: Counter[str]) -> int:
    for name, number in sorted(tried.items()):
        wrong = sum(times for words, times in failed.items() if words.startswith(f"{name}:"))
        print(f"{name:12} {number:8,} tried {wrong:6,} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
