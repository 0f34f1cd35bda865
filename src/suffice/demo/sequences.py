"""Sequences: short clinical notes for a conditional random field, and a dishonest casino for a hidden Markov model.

Both are drawn with fixed seeds by ``tools/make_demo_data.py``.
"""

from __future__ import annotations

import csv
import gzip

import numpy as np

import suffice as sf
from suffice.demo.exhibits import Exhibit, bundled
from suffice.sources.tagged_text import features, lines_of_file, read_steps

Labelled = tuple[list[list[list[str]]], list[list[str]]]


def tagged(name: str) -> Labelled:
    """Features and labels of bundled notes."""
    notes = read_steps(lines_of_file(str(bundled(name))))
    return [features(note, 1) for note in notes], [[step[-1] for step in note] for note in notes]


def random_field() -> Exhibit:
    """Symptoms, drugs, doses and times in notes, learned and tried on notes not seen before."""
    crf = sf.ChainCRF(prior=sf.Normal(variance=10.0)).fit(*tagged("notes-train.txt.gz"))
    tried = tagged("notes-test.txt.gz")
    words = "Mrs Gray takes aspirin 500 mg for chest pain since Monday .".split()
    labels = crf.predict([features([[word] for word in words], 1)])[0]
    shown = " ".join(word if label == "O" else f"{word}/{label}" for word, label in zip(words, labels, strict=True))
    judged = crf.evaluate(*tried)
    finding = (f"{judged.accuracy:.1%} of the words of {len(tried[1])} other notes get the right label.", shown)
    about = f"{crf.report_.rows} notes, {len(crf.labels_)} labels, {len(crf.feature_names_):,} features of words."
    return Exhibit("notes", "A conditional random field that reads clinical notes", about, finding, crf)


def hidden_markov() -> Exhibit:
    """A casino that changes between a fair and a loaded die, learned from the rolls alone."""
    games, dice = _casino()
    hmm = sf.HiddenMarkovModel(2, sf.Categorical(states=range(1, 7)), random_state=0).fit(games)
    faces, stays = hmm.emission_probabilities_, np.diag(hmm.transitions_)
    right = hmm.accuracy(games, dice)
    shown = [
        f"{state:>3}   {stay:.2f}  {' '.join(f'{face:.2f}' for face in row)}"
        for state, stay, row in zip(hmm.states_, stays, faces, strict=True)
    ]
    rows = "\n".join(["die  stays  faces 1 to 6", *shown])
    finding = (rows, f"The most probable path names the die rightly at {right:.1%} of the rolls.")
    about = (
        f"{len(games)} games of {len(games[0])} rolls. The fair die stays with 0.95; the loaded one with 0.90, "
        "and shows a six half of the time."
    )
    return Exhibit("casino", "A hidden Markov model of a dishonest casino", about, finding, hmm)


def _casino() -> tuple[list[list[int]], list[list[str]]]:
    games: dict[str, tuple[list[int], list[str]]] = {}
    with gzip.open(bundled("casino.csv.gz"), "rt", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            rolls, dice = games.setdefault(row["game"], ([], []))
            rolls.append(int(row["roll"]))
            dice.append(row["die"])
    return [rolls for rolls, _ in games.values()], [dice for _, dice in games.values()]
