"""Damaged files and rows of any kind: a fixed number of each, the same in every run, and all that ever failed."""

import random
from pathlib import Path

import pytest

import suffice as sf
from fuzz.fuzzing import TARGETS, Target, saved
from fuzz.mutation import mutate_bytes, mutate_text, mutate_tree
from fuzz.zoo import ZOO
from suffice import storage

#: Inputs of each kind in a run of the tests; `python tools/fuzz_everything.py --seconds 600` tries more.
BUDGET = {"native": 500, "zipped": 150, "rows": 600}
USUAL = 100


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_are_refused_or_work(name: str) -> None:
    chance = random.Random(f"budget of {name}")
    target: Target = TARGETS[name]
    for _ in range(BUDGET.get(name, USUAL)):
        target.check(target.make(chance))


@pytest.mark.parametrize("path", [path for name in TARGETS for path in saved(name)], ids=lambda path: path.name)
def test_what_once_failed_is_refused_or_works(path: Path) -> None:
    TARGETS[path.parent.name].check(path.read_bytes())


def test_the_zoo_is_whole_and_answers() -> None:
    kinds = set()
    for name, animal in ZOO.items():
        model = animal.make()
        back = storage.loads(storage.dumps(model))
        assert storage.dumps(back) == storage.dumps(model), name
        kinds.add(type(model).__name__)
        for ask in animal.asks:
            ask(back)
    exported = {name for name in dir(sf) if isinstance(getattr(sf, name), type)}
    # A mixture is a part of a hidden Markov model, and no model of its own.
    able = {name for name in exported if hasattr(getattr(sf, name), "fit") or name == "Summary"} - {"Mixture"}
    assert able <= kinds


def test_damage_is_the_same_for_the_same_seed() -> None:
    text = storage.dumps(sf.Normal(0, 1))
    for mutate in (mutate_text, mutate_tree):
        first, second = ([mutate(text, random.Random(seed)) for seed in range(20)] for _ in range(2))
        assert first == second
        assert len(set(first)) > 10
    assert mutate_bytes(text.encode(), random.Random(0)) == mutate_bytes(text.encode(), random.Random(0))
