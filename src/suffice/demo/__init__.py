"""The main job on bundled data: from files to fitted, certified, saved models, and a page that shows them.

All data are drawn with fixed seeds from models that ``tools/make_demo_data.py`` writes out.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import suffice as sf
from suffice.demo import alarm, infections, sequences, visits
from suffice.demo.exhibits import Exhibit, Say, unpack
from suffice.demo.page import index_page

EXHIBITS = (
    alarm.bayesian_network,
    infections.incomplete_rows,
    alarm.markov_network,
    sequences.random_field,
    sequences.hidden_markov,
    visits.regression,
)


def run(folder: Path, say: Say) -> list[Exhibit]:
    """Fit every exhibit, print what came out, write models, reports, data and the page; return the exhibits."""
    unpack(folder / "data")
    say(f"suffice {sf.__version__}: {len(EXHIBITS)} models, fitted to bundled data\n")
    shown = []
    for make in EXHIBITS:
        exhibit = make()
        exhibit.show(folder, say)
        shown.append(exhibit)
    commands = try_next(folder)
    page = folder / "index.html"
    page.write_text(index_page(shown, commands), encoding="utf-8")
    say(f"Open {page} in a browser: it leads to the report of each model. The models are beside it. Try next:")
    for command in commands:
        say(f"  {command}")
    return shown


def try_next(folder: Path) -> list[str]:
    """Commands that go on from what the demo has written."""

    def at(name: str) -> str:
        return shlex.quote(str(folder / name))

    return [
        f"suffice query {at('alarm.json')} HYPOVOLEMIA ANAPHYLAXIS --given BP=LOW",
        f"suffice predict {at('notes.json')} {at('data/notes-test.txt')}",
        f"suffice fit {at('data/alarm.bif')} {at('data/alarm.csv')} --prior bdeu:10 -o {at('mine.json')}"
        f" --report {at('mine.html')}",
        f"suffice fit 'visits ~ age + smoker' {at('data/visits.csv')} --model glm --option family=poisson",
        f"suffice fit {at('data/casino.csv')} --model hmm --option states=2 --group game --column roll",
        f"suffice plan {at('data/alarm.bif')}",
    ]
