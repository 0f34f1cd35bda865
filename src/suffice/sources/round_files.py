"""Rounds by files: the fit writes questions into a folder, sites write answers, and the fit goes on where it was.

A fit is a function of the answers. Run again, it asks the same questions, finds those that are answered, and stops at
the first that is not. Each file bears the fingerprint of its question, and each question that of the one before.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from suffice.errors import FileFormatError, MergeError, OptionError, SufficeError, listing
from suffice.sources.sites import Question, Rounds, Site
from suffice.sources.wire import packed, unpacked
from suffice.storage import dumps, load, save

#: Seconds between two looks at a folder.
_PAUSE = 0.2


class MissingAnswersError(SufficeError):
    """Sites have not answered yet; the fit goes on when it is run again."""


class FileRounds(Rounds):
    """Sites that exchange files in a folder: the fit writes questions, ``suffice round`` at each site writes answers.

    Where an answer is missing, the fit ends with an error that says which. Run again, it goes on from there: what was
    answered is not asked again. One folder holds one fit.

    Args:
        folder: An empty folder, or that of a fit which goes on.
        names: The names of the sites.
        wait: Seconds to wait for the answers of a round.
    """

    def __init__(self, folder: str | os.PathLike[str], names: Sequence[str], wait: float = 0.0) -> None:
        """Keep the folder, which must exist."""
        self._folder, self._wait = Path(folder), wait
        if not self._folder.is_dir():
            raise OptionError(f"{str(folder)!r} is no folder; make it first.")
        if isinstance(names, str):
            raise OptionError(f"The sites are {names!r}; expected a list of their names.")
        super().__init__(dict.fromkeys(names, _by_file))
        self._number, self._before = 0, ""

    def ask(self, question: Question, names: Sequence[str] | None = None) -> list[Any]:
        """The answers of the sites, from their files; an error that says which are missing."""
        self._number += 1
        path = self._folder / f"question-{self._number:04}.json"
        tree = {"round": self._number, "before": self._before, "question": packed(question)}
        if path.exists():
            self._check_same(path, tree)
        else:
            save(path, tree)
        self._before = mark_of(path)
        asked = list(self.sites) if names is None else list(names)
        files = {name: self._folder / f"answer-{self._number:04}-{name}.json" for name in asked}
        until = time.monotonic() + self._wait
        while lacking := [name for name, file in files.items() if not file.exists()]:
            if time.monotonic() >= until:
                raise MissingAnswersError(
                    f"{path} waits for an answer of {listing(lacking)}. Run `suffice round {path.name} DATA --site "
                    "NAME` there, bring the answer to the folder, and run the same fit again: it goes on from here."
                )
            time.sleep(_PAUSE)
        return [read_answer(file, self._before, name) for name, file in files.items()]

    def _check_same(self, path: Path, tree: dict[str, Any]) -> None:
        if path.read_text(encoding="utf-8") != dumps(tree):
            raise MergeError(
                f"{path} holds a question of another fit, or of other options. Begin each fit in an empty folder."
            )


def _by_file(question: Question) -> Any:
    raise OptionError("Sites of a folder are asked together.")


def mark_of(path: Path) -> str:
    """What tells the question of a file from all others."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def read_question(path: Path) -> Question:
    """The question of a file; whatever else it holds is an error."""
    tree = _tree(path, {"round", "before", "question"})
    question = _value(path, tree["question"])
    if not isinstance(question, Question):
        raise FileFormatError(f"{path}: it holds no question.")
    return question


def read_answer(path: Path, asked: str, site: str) -> Any:
    """The answer of a site to the question with this fingerprint."""
    tree = _tree(path, {"fingerprint", "site", "answer"})
    if tree["fingerprint"] != asked:
        raise MergeError(f"{path} answers another question: of another round, or of another fit. Answer this one.")
    if tree["site"] != site:
        raise MergeError(f"{path} is an answer of site {tree['site']!r}; expected that of {site!r}.")
    return _value(path, tree["answer"])


def write_answer(question: Path, site: Site, name: str, answer: Path) -> None:
    """Answer the question of a file by another file."""
    value = site.answer(read_question(question))
    save(answer, {"fingerprint": mark_of(question), "site": name, "answer": packed(value)})


def _tree(path: Path, keys: set[str]) -> dict[str, Any]:
    tree = load(path)
    if not isinstance(tree, dict) or set(tree) != keys:
        raise FileFormatError(f"{path}: it is no {'question' if 'question' in keys else 'answer'} of a round.")
    return tree


def _value(path: Path, tree: Any) -> Any:
    try:
        return unpacked(tree)
    except Exception as error:  # Damaged content can make any record fail in any way: the file is to blame.
        raise FileFormatError(f"{path}: {error}") from error
