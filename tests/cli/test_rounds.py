"""Rounds by files: the fit goes on as answers come in; wrong, damaged and hostile files are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from command_line import Command
from suffice.sources import wire
from suffice.sources.named import NAMED
from suffice.sources.round_files import MissingAnswersError, write_answer

RNG = np.random.default_rng(5)
ROWS = pd.DataFrame({"ward": RNG.choice(list("ab"), 120), "dose": RNG.normal(size=120)})
ROWS["cured"] = (RNG.random(120) < 1 / (1 + np.exp(-ROWS.dose))).astype(int)
PARTS = {"north": ROWS[:50].reset_index(drop=True), "south": ROWS[50:].reset_index(drop=True)}


def fitted_by_files(model: Any, folder: Path, parts: dict[str, pd.DataFrame], **options: Any) -> tuple[Any, int]:
    """The fit, run again and again until all rounds are answered, and the number of rounds."""
    for number in range(1, 200):
        try:
            return model.clone().fit(sf.FileRounds(folder, list(parts)), **options), number - 1
        except MissingAnswersError:
            question = folder / f"question-{number:04}.json"
            for name, part in parts.items():
                write_answer(question, sf.Site(part), name, folder / f"answer-{number:04}-{name}.json")
    raise AssertionError("no end")


def test_a_regression_by_files_equals_that_by_calls(tmp_path: Path) -> None:
    calls = sf.Rounds({name: sf.Site(part) for name, part in PARTS.items()})
    here = sf.GLM("binomial").fit(calls, y="cured")
    there, rounds = fitted_by_files(sf.GLM("binomial"), tmp_path, PARTS, y="cured")
    assert rounds > 5
    np.testing.assert_array_equal(there.coefficients_, here.coefficients_)
    assert there.report_.certificate == here.report_.certificate


def test_em_by_files_equals_that_by_calls(tmp_path: Path) -> None:
    frame = ROWS[["ward"]].assign(other=RNG.choice(list("uv"), 120)).mask(RNG.random((120, 2)) < 0.1)
    parts = {"north": frame[:50].reset_index(drop=True), "south": frame[50:].reset_index(drop=True)}
    model = sf.BayesianNetwork([("ward", "other")], tolerance=1e-3)
    here = model.clone().fit(sf.Rounds({name: sf.Site(part) for name, part in parts.items()}))
    there, _ = fitted_by_files(model, tmp_path, parts)
    np.testing.assert_array_equal(there.query(["ward", "other"]).values, here.query(["ward", "other"]).values)


def first_question(folder: Path) -> Path:
    with pytest.raises(MissingAnswersError, match=r"waits for an answer of 'north', 'south'.*suffice round"):
        sf.GLM("binomial").fit(sf.FileRounds(folder, list(PARTS)), y="cured")
    return folder / "question-0001.json"


def test_the_command_answers_a_round(good: Command, command: Command, tmp_path: Path) -> None:
    question = first_question(tmp_path)
    for name, part in PARTS.items():
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        good("round", str(question), str(tmp_path / f"{name}.csv"), "--site", name)
        assert (tmp_path / f"answer-0001-{name}.json").exists()
    with pytest.raises(MissingAnswersError, match="question-0002"):
        sf.GLM("binomial").fit(sf.FileRounds(tmp_path, list(PARTS)), y="cured")
    few = ("round", str(tmp_path / "question-0002.json"), str(tmp_path / "north.csv"), "--site", "north")
    refused = command(*few, "--minimum-count", "1000")
    assert refused.code != 0
    assert "minimum_count=1000" in refused.err


def test_files_of_another_round_fit_or_site_are_refused(tmp_path: Path) -> None:
    question = first_question(tmp_path)
    options: dict[str, Any] = {"y": "cured"}
    for name, part in PARTS.items():
        write_answer(question, sf.Site(part), name, tmp_path / f"answer-0001-{name}.json")
    with pytest.raises(MissingAnswersError):
        sf.GLM("binomial").fit(sf.FileRounds(tmp_path, list(PARTS)), **options)
    with pytest.raises(sf.MergeError, match="question of another fit"):
        sf.GLM("binomial").fit(sf.FileRounds(tmp_path, list(PARTS)), y="cured", columns=["dose"])
    late = tmp_path / "answer-0002-north.json"
    late.write_bytes((tmp_path / "answer-0001-north.json").read_bytes())
    (tmp_path / "answer-0002-south.json").write_bytes((tmp_path / "answer-0001-south.json").read_bytes())
    with pytest.raises(sf.MergeError, match="answers another question"):
        sf.GLM("binomial").fit(sf.FileRounds(tmp_path, list(PARTS)), **options)
    swapped = tmp_path / "answer-0001-north.json"
    swapped.write_bytes((tmp_path / "answer-0001-south.json").read_bytes())
    with pytest.raises(sf.MergeError, match="answer of site 'south'"):
        sf.GLM("binomial").fit(sf.FileRounds(tmp_path, list(PARTS)), **options)


@pytest.mark.parametrize(
    "evil",
    [
        {"is": "name", "name": "os:system"},
        {"is": "name", "name": "suffice.storage.files:save"},
        {
            "is": "partial",
            "of": {"is": "name", "name": "builtins:eval"},
            "args": [],
            "named": {"is": "dict", "items": []},
        },
        {"is": "record", "name": "subprocess:Popen", "args": [], "state": None},
        {"is": "method", "name": "__init__", "of": {"is": "record", "name": "os:_wrap_close"}},
        {"is": "reduce"},
        "a text",
    ],
)
def test_hostile_questions_are_refused(tmp_path: Path, evil: object) -> None:
    question = first_question(tmp_path)
    document = json.loads(question.read_text(encoding="utf-8"))
    document["content"]["question"] = evil
    question.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(sf.FileFormatError, match="question-0001"):
        write_answer(question, sf.Site(PARTS["north"]), "north", tmp_path / "answer.json")
    assert not (tmp_path / "answer.json").exists()


def test_what_is_named_is_the_librarys_own() -> None:
    for name in NAMED:
        assert name.startswith("suffice.")
        assert callable(wire._named(name))


def test_a_folder_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(sf.OptionError, match="no folder"):
        sf.FileRounds(tmp_path / "nowhere", ["north"])
    with pytest.raises(sf.OptionError, match="list of their names"):
        sf.FileRounds(tmp_path, "north")
