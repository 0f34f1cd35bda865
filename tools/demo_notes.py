"""Short clinical notes, made of patterns, with a label for each word: symptoms, drugs, doses and times."""

from __future__ import annotations

import numpy as np

WHO = ("The patient", "He", "She", "Mrs Gray", "Mr Stone", "The boy", "The girl", "This woman")
SYMPTOMS = (
    *("headache", "chest pain", "shortness of breath", "high fever", "nausea", "dry cough", "back pain", "a cold"),
    *("dizziness", "sore throat", "joint pain", "skin rash", "loss of appetite", "blurred vision", "muscle cramps"),
)
DRUGS = (
    *("aspirin", "ibuprofen", "paracetamol", "amoxicillin", "metformin", "insulin", "heparin", "atenolol"),
    *("codeine", "prednisone", "salbutamol", "omeprazole", "warfarin", "digoxin", "ramipril", "doxycycline"),
)
#: Words that only notes to be tried hold.
NEW_SYMPTOMS = ("stomach ache", "night sweats", "itching", "palpitations", "swollen ankles", "low mood")
NEW_DRUGS = ("naproxen", "cetirizine", "lisinopril", "furosemide", "Ventolin", "morphine")
AMOUNTS = ("5 mg", "10 mg", "50 mg", "100 mg", "500 mg", "1 g", "2 ml", "20 units", "two tablets", "one tablet")
TIMES = ("two days", "three weeks", "a month", "yesterday", "Monday", "last night", "five hours", "a year", "May")
#: S symptom, D drug, A amount, T time, W who; everything else stands for itself.
PATTERNS = (
    *("W reports S since T .", "W has S .", "W denies S and S .", "No S .", "W complains of S for T ."),
    *("Start D A daily .", "Stop D .", "D A was given for S .", "Continue D A until T .", "W takes D A for S ."),
    *("After A of D the S went away .", "Increase D to A .", "W drank cold water .", "W asked for pain relief ."),
    *("Allergic to D .", "The S began T .", "D did not help against S .", "W may go home on Monday ."),
    *("Seen T with S and S .", "Change from D to D A .", "W was seen by Dr May .", "Review in T ."),
)
KINDS = {"S": "SYMPTOM", "D": "DRUG", "A": "DOSE", "T": "TIME"}


def notes(n: int, seed: int, *, new: bool) -> list[list[tuple[str, str]]]:
    """`n` notes, each a list of words with their labels; with `new` words that others do not hold."""
    rng = np.random.default_rng(seed)
    more = (NEW_SYMPTOMS, NEW_DRUGS) if new else ((), ())
    choices = {"S": (*SYMPTOMS, *more[0]), "D": (*DRUGS, *more[1]), "A": AMOUNTS, "T": TIMES}
    return [_note(str(rng.choice(PATTERNS)), choices, rng) for _ in range(n)]


def _note(pattern: str, choices: dict[str, tuple[str, ...]], rng: np.random.Generator) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in pattern.split():
        if part == "W":
            found += [(word, "O") for word in str(rng.choice(WHO)).split()]
        elif part in KINDS:
            words = str(rng.choice(choices[part])).split()
            found += [(word, f"{'I' if at else 'B'}-{KINDS[part]}") for at, word in enumerate(words)]
        else:
            found.append((part, "O"))
    first, label = found[0]
    return [(first[0].upper() + first[1:], label), *found[1:]]
