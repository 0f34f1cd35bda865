"""ARPA files that make no sense are refused with the line; damaged gzipped texts are errors of ours."""

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

TEXT = [line.split() for line in ("the cat sat on the mat", "the dog sat on the log", "a cat and a dog ran", "the log")]
WAYS: list[Any] = [
    {"smoothing": sf.KneserNey()},
    {"smoothing": sf.Katz(1)},
    {"smoothing": "deleted"},
    {"prior": 0.5},
    {},
]


def written(folder: Path, order: int = 2, **options: Any) -> str:
    sf.MarkovChain(order, bounds=True, unknown="<unk>", **options).fit(TEXT).write(folder / "good.arpa")
    return (folder / "good.arpa").read_text()


def line_of(text: str, part: str) -> int:
    return next(at for at, line in enumerate(text.splitlines(), 1) if part in line)


GOOD = """\\data\\
ngram 1=4
ngram 2=3

\\1-grams:
-0.30103\ta\t-0.1
-0.60206\tb\t0
-0.60206\t</s>
-99\t<s>\t-0.7

\\2-grams:
-0.30103\ta a
-0.60206\ta b
-0.1\t<s> b

\\end\\
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("-0.60206\tb", "-0.1\tb", 7, "single words have the probability 1.54"),
        ("-0.60206\ta b", "-0.05\ta b", 13, "after 'a' have the probability"),
        ("-0.30103\ta a", "nan\ta a", 12, "no probabilities"),
        ("-0.30103\ta a", "0.4\ta a", 12, "no probabilities"),
        ("-0.1\n-0.60206\tb\t0", "0.9\n-0.60206\tb\t0", 6, "after 'a' have the probability"),
        ("-0.60206\tb\t0", "-0.60206\tb\t0.5", 7, "after 'b' have the probability"),
        ("-0.60206\tb\t0", "-0.60206\tb\tinf", 7, "no probabilities"),
        ("-0.60206\tb\t0", "-0.60206\tb\t320", 7, "no probabilities"),
        ("a b", "a <s>", 13, "can only come first"),
        ("a b", "a a", 13, "comes twice"),
    ],
)
def test_probabilities_that_make_no_sense_are_refused(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    path = tmp_path / "x.arpa"
    path.write_text(GOOD)
    assert sf.read(path).probability("b", "a") == pytest.approx(0.25, rel=1e-5)
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(sf.FileFormatError, match=message) as caught:
        sf.read(path)
    assert f"line {line}:" in str(caught.value)


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("digits", [4, 7])
def test_files_with_few_digits_are_read(tmp_path: Path, options: dict[str, Any], digits: int) -> None:
    """Other tools write log10 with four to seven digits."""
    lines = []
    for line in written(tmp_path, 3, **options).splitlines():
        parts = line.split("\t")
        for at in (0, 2):
            if len(parts) > 1 and at < len(parts):
                parts[at] = f"{float(parts[at]):.{digits}f}"
        lines.append("\t".join(parts))
    (tmp_path / "short.arpa").write_text("\n".join(lines) + "\n")
    chain = sf.read(tmp_path / "short.arpa")
    assert chain.row(["the", "cat", "sat"]).values.sum() == pytest.approx(1.0, abs=2e-3)


def mutated(text: str, rng: np.random.Generator) -> str:
    letters = list(text)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(letters)))
        kind = int(rng.integers(4))
        if kind == 0:
            letters[at] = str(rng.choice(list("0123456789-.e\tab\n")))
        elif kind == 1:
            del letters[at]
        elif kind == 2:
            letters.insert(at, str(rng.choice(list("0123456789-.e"))))
        else:
            lines = "".join(letters).split("\n")
            a, b = rng.integers(len(lines), size=2)
            lines[a], lines[b] = lines[b], lines[a]
            letters = list("\n".join(lines))
    return "".join(letters)


def test_what_is_read_after_mutations_is_a_law(tmp_path: Path) -> None:
    """Every row of an accepted file adds up to one at most, up to four digits."""
    text = written(tmp_path, 2, smoothing=sf.KneserNey())
    rng = np.random.default_rng(0)
    path, read = tmp_path / "mutated.arpa", 0
    for _ in range(400):
        path.write_text(mutated(text, rng))
        try:
            chain = sf.read(path)
        except sf.FileFormatError:
            continue
        read += 1
        words = [state for state in chain.states_ if state != "</s>"][:6]
        for history in [(), *itertools.product(words, repeat=2)]:
            row = chain.row(list(history)).values
            assert not np.isnan(row).any()
            assert row.sum() <= 1.02
    assert 20 < read < 380


def test_damaged_gzipped_texts_are_file_format_errors(tmp_path: Path) -> None:
    """Of chains, of data that chains are learned from, and of the command's structures."""
    from suffice.cli.structures import _text_of
    from suffice.sources.tagged_text import lines_of_file

    whole = gzip.compress(written(tmp_path, 2, smoothing=sf.KneserNey()).encode())
    rng = np.random.default_rng(1)
    path = tmp_path / "x.arpa.gz"
    refused = 0
    for trial in range(60):
        data = bytearray(whole)
        if trial % 3 == 0:
            data = data[: int(rng.integers(1, len(data)))]
        else:
            data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data))
        readers: list[Any] = [
            lambda: sf.read(path),
            lambda: sf.MarkovChain().fit(path),
            lambda: sf.MarkovChain(tokens="characters").fit(path),
            lambda: list(lines_of_file(str(path))),
            lambda: _text_of(path),
        ]
        for reader in readers:
            try:
                reader()
            except sf.SufficeError:
                refused += 1
    assert refused > 250
