"""Ratios to the best rival, as they were saved, and whether a run still reaches them.

Times belong to a machine and a day; how many times as long a rival takes in the same run does much less so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.harness import Outcome
from benchmarks.table import LEAST, leads, timing_of

SAVED = Path(__file__).with_name("saved.json")
#: A ratio may be this much smaller than the saved one before it counts as a loss of speed.
MARGIN = 1.4


def save(outcome: Outcome, name: str, path: Path = SAVED) -> None:
    """Keep the ratios of a run under the name of its table."""
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    content[name] = [
        {"row": lead.row, "rival": lead.rival, "when": lead.when, "ratio": float(f"{lead.ratio:.3g}")}
        for lead in leads(outcome)
    ]
    path.write_text(json.dumps(dict(sorted(content.items())), indent=1) + "\n")


def slower(outcome: Outcome, name: str, margin: float = MARGIN, path: Path = SAVED) -> list[str]:
    """A line for each ratio that is less than the saved one by more than the margin, to the same rival."""
    content: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if name not in content:
        return [f"{name}: no ratios are saved; run it with --save first"]
    results = {result.name: result for result in outcome.results}
    lines = []
    for saved in content[name]:
        ours, rival = results.get(saved["row"]), results.get(saved["rival"])
        if ours is None or rival is None:
            continue  # Not installed here, or left out by --only.
        own, other = timing_of(ours, saved["when"]), timing_of(rival, saved["when"])
        if own is None or other is None:
            continue
        ratio = other.cpu / max(own.cpu, LEAST)
        if ratio * margin < saved["ratio"]:
            row = f"{name}, {saved['row']}, {saved['when']}"
            lines.append(f"{row}: {ratio:.2f} of {saved['rival']}, saved were {saved['ratio']:.2f}")
    return lines
