"""Language models: vocabularies, bounds, texts read once, ARPA files, perplexity, samples."""

import gzip
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from network_files import shared
from suffice.kernels import choice
from suffice.kernels.words import WordNumbers
from suffice.sources import ngrams

LINES = ["the cat sat", "the dog  sat down", "", "a cat ran", "\tthe cat ran down ", "zoë naïve"]
TEXT = [line.split() for line in LINES if line.split()]
WAYS: list[Any] = [
    sf.KneserNey(),
    sf.Katz(),
    sf.AbsoluteDiscount(),
    sf.AbsoluteDiscount(0.4, backoff=True),
    sf.Interpolation("deleted"),
    None,
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


# -- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
def test_a_file_an_iterator_and_lists_give_the_same_fit(corpus: Path, mode: str) -> None:
    packed = corpus.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    whole = sf.MarkovChain(2, bounds=True).fit(TEXT)
    with choice.force(mode):
        forms: list[Any] = [corpus, str(corpus), packed, iter(TEXT), (list(row) for row in TEXT)]
        for data in forms:
            assert sf.MarkovChain(2, bounds=True).fit(data).statistics_ == whole.statistics_
    lines = sf.MarkovChain(2, bounds=True, tokens="words").fit([line for line in LINES if line.split()])
    assert lines.statistics_ == whole.statistics_
    letters = sf.MarkovChain(tokens="characters").fit(corpus)
    assert letters.statistics_ == sf.MarkovChain().fit([line for line in LINES if line]).statistics_
    assert sf.MarkovChain(tokens=lambda line: line.split("t")).fit(["atb", "c"]).states_ == ("a", "b", "c")


def test_a_stream_is_counted_in_pieces(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sf.MarkovChain(2, bounds=True).fit(TEXT)
    monkeypatch.setattr(ngrams, "HELD", 3)
    monkeypatch.setattr(ngrams, "CHUNK_BYTES", 20)
    monkeypatch.setattr(ngrams, "CHUNK_SEQUENCES", 2)
    assert sf.MarkovChain(2, bounds=True).fit(corpus).statistics_ == whole.statistics_
    assert sf.MarkovChain(2, bounds=True).fit(iter(TEXT)).statistics_ == whole.statistics_


def test_words_are_numbered_alike_on_both_paths() -> None:
    rng = np.random.default_rng(0)
    words = [bytes(rng.integers(97, 123, rng.integers(1, 6), dtype=np.uint8)) for _ in range(300)]
    text = b"".join(words[at] + rng.choice([b" ", b"\n", b"\t \r\n", b"  "]) for at in rng.integers(0, 300, 4000))
    found: list[Any] = []
    for mode in ("numpy", "compiled"):
        with choice.force(mode):
            numbers = WordNumbers()
            first, second = numbers.read(text[:9000]), numbers.read(text[9000:])
            found.append((*first, *second, numbers.words))
    for left, right in zip(found[0][:4], found[1][:4], strict=True):
        assert np.array_equal(left, right)
    assert found[0][4] == found[1][4]


def test_a_vocabulary_grows_beyond_its_first_tables() -> None:
    words = [f"w{number}".encode() for number in range(140_000)]
    with choice.force("compiled"):
        numbers = WordNumbers()
        codes, offsets = numbers.read(b" ".join(words) + b"\n" + b" ".join(words[:10]))
    assert np.array_equal(codes, [*range(140_000), *range(10)])
    assert offsets.tolist() == [0, 140_000, 140_010]
    assert numbers.words == words


def test_windows_too_wide_for_one_word_are_counted() -> None:
    rng = np.random.default_rng(0)
    sequences = [rng.integers(0, 50, 30).tolist() for _ in range(20)]
    chain = sf.MarkovChain(11).fit(sequences)
    padded = [["<s>"] * 11 + sequence for sequence in sequences]
    runs = Counter(tuple(row[at - 11 : at + 1]) for row in padded for at in range(11, len(row)))
    assert len(chain.statistics_[chain._task().layout.question].items()[1]) == len(runs)
    rows = Counter(run[:-1] for run in runs.elements())
    by_hand = sum(n * math.log(n / rows[run[:-1]]) for run, n in runs.items())
    assert chain.report_.log_likelihood == pytest.approx(by_hand, rel=1e-12)
    assert chain.score_samples(sequences).sum() == pytest.approx(chain.report_.log_likelihood, rel=1e-12)


def test_bad_texts_say_why(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text(" \n\n")
    (tmp_path / "latin.txt").write_bytes("caf\xe9 au lait".encode("latin-1"))
    with pytest.raises(sf.DataError, match="no words"):
        sf.MarkovChain().fit(tmp_path / "empty.txt")
    with pytest.raises(sf.DataError, match="UTF-8"):
        sf.MarkovChain().fit(tmp_path / "latin.txt")
    with pytest.raises(sf.DataError, match="no file"):
        sf.MarkovChain().fit(tmp_path / "none.txt")
    with pytest.raises(sf.OptionError, match="no weights"):
        sf.MarkovChain().fit(iter(TEXT), sample_weight=[1.0])
    with pytest.raises(sf.DataError, match="Sequence 1"):
        sf.MarkovChain().fit(iter([["a"], []]))


# -- vocabulary ------------------------------------------------------------------------------------------------------


def test_rare_words_are_unknown() -> None:
    chain = sf.MarkovChain(unknown="<unk>", min_count=2, bounds=True).fit(TEXT)
    kept = {word for word, n in Counter(w for row in TEXT for w in row).items() if n >= 2}
    assert set(chain.states_) == {*kept, "<unk>", "</s>"}
    by_hand = [[word if word in kept else "<unk>" for word in row] for row in TEXT]
    other = sf.MarkovChain(bounds=True, states=[s for s in chain.states_ if s != "</s>"]).fit(by_hand)
    for row in by_hand:
        for history, word in zip(["<s>", *row], [*row, "</s>"], strict=True):
            assert chain.probability(word, [history]) == pytest.approx(other.probability(word, [history]), rel=1e-14)
    assert chain.score([["the", "zebra"]]) == chain.score([["the", "<unk>"]])
    assert chain.probability("zebra", "quagga") == chain.probability("<unk>", "<unk>")


def test_rare_words_are_told_from_all_chunks() -> None:
    chunks = sf.MarkovChain(unknown="<unk>", min_count=2, bounds=True).fit(TEXT[:2]).partial_fit(TEXT[2:])
    whole = sf.MarkovChain(unknown="<unk>", min_count=2, bounds=True).fit(TEXT)
    assert chunks.states_ == whole.states_
    assert chunks.transitions_.allclose(whole.transitions_)


def test_unknown_words_without_a_stand_in() -> None:
    chain = sf.MarkovChain(smoothing="kneser-ney", bounds=True).fit(TEXT)
    assert chain.score([["the", "zebra"]]) == -math.inf
    with pytest.raises(sf.UnknownStateError, match="zebra"):
        chain.probability("zebra", "the")
    known = sf.MarkovChain(smoothing="kneser-ney", bounds=True, unknown="<unk>").fit(TEXT)
    assert math.isfinite(known.score([["the", "zebra"]]))


def test_perplexity_counts_the_end_of_each_sentence() -> None:
    chain = sf.MarkovChain(prior=1.0, bounds=True).fit(TEXT)
    events = sum(len(row) + 1 for row in TEXT)
    assert chain.report_.rows == events
    assert chain.perplexity(TEXT) == pytest.approx(math.exp(-chain.score_samples(TEXT).sum() / events), rel=1e-12)
    assert chain.perplexity(TEXT) == pytest.approx(math.exp(-chain.score(TEXT)), rel=1e-12)
    assert chain.score_samples(TEXT).sum() == pytest.approx(chain.score(TEXT) * events, rel=1e-12)


def test_samples_end() -> None:
    chain = sf.MarkovChain(2, smoothing="kneser-ney", bounds=True).fit(TEXT)
    drawn = chain.sample(200, random_state=1)
    assert {word for row in drawn for word in row} <= set(chain.states_) - {"</s>"}
    assert chain.sample(5, random_state=1) == chain.sample(5, random_state=1)
    cut = chain.sample(50, 2, random_state=0)
    assert max(map(len, cut)) <= 2


def test_a_history_says_where_it_begins() -> None:
    chain = sf.MarkovChain(2, bounds=True, smoothing="absolute").fit(TEXT)
    assert chain.probability("cat", ["<s>", "the"]) == chain.probability("cat", ["ran", "<s>", "the"][1:])
    assert chain.probability("the") == chain.probability("the", ["<s>"])
    with pytest.raises(sf.OptionError, match="order 2"):
        chain.probability("cat", ["the"])
    with pytest.raises(sf.SizeError, match="cells"):
        sf.MarkovChain(3, smoothing="absolute").fit([[*range(100)]]).transitions_  # noqa: B018


def test_more_smoothing_and_longer_histories_help_on_a_book() -> None:
    text = gzip.decompress(shared("text/pride_and_prejudice.txt.gz").read_bytes()).decode()
    rows = [line.lower().split() for line in text.splitlines() if line.strip()]
    train, test = rows[: len(rows) * 9 // 10], rows[len(rows) * 9 // 10 :]

    def perplexity(order: int, **options: Any) -> float:
        return sf.MarkovChain(order, bounds=True, unknown="<unk>", **options).fit(train).perplexity(test)

    kneser = perplexity(2, smoothing=sf.KneserNey())
    assert kneser < perplexity(1, smoothing=sf.KneserNey()) < perplexity(1, smoothing=sf.AbsoluteDiscount())
    assert kneser < perplexity(2, smoothing=sf.Interpolation("deleted", buckets=(2, 5, 20, 100)))
    assert perplexity(1, prior=1.0) > 3 * kneser


# -- ARPA files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("ending", [".arpa", ".arpa.gz"])
def test_an_arpa_file_gives_the_same_law(tmp_path: Path, way: Any, order: int, ending: str) -> None:
    chain = sf.MarkovChain(order, smoothing=way, bounds=True, unknown="<unk>").fit(TEXT)
    chain.write(tmp_path / f"model{ending}")
    again = sf.read(tmp_path / f"model{ending}")
    assert again.states_ == chain.states_
    test = [*TEXT, ["cat", "the", "a"], ["zebra"], ["the", "zebra", "sat"]]
    left, right = chain.score_samples(test), again.score_samples(test)
    assert np.array_equal(np.isfinite(left), np.isfinite(right))
    assert right[np.isfinite(right)] == pytest.approx(left[np.isfinite(left)], rel=1e-9)
    again.write(tmp_path / "model.json")
    assert np.array_equal(sf.read(tmp_path / "model.json").score_samples(test), right)
    with pytest.raises(sf.EstimateError, match="without counts"):
        again.counts("<s>")


def test_other_readers_agree_on_arpa_files(tmp_path: Path) -> None:
    arpa = pytest.importorskip("arpa")
    chain = sf.MarkovChain(2, smoothing=sf.KneserNey(), bounds=True, unknown="<unk>").fit(TEXT)
    chain.write(tmp_path / "model.arpa")
    peer = arpa.loadf(str(tmp_path / "model.arpa"))[0]
    for row, found in zip(TEXT, chain.score_samples(TEXT), strict=True):
        assert peer.log_s(" ".join(row)) * math.log(10) == pytest.approx(found, rel=1e-9)


def test_kenlm_agrees_on_arpa_files(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    for order in (1, 2, 3):
        chain = sf.MarkovChain(order, smoothing=sf.KneserNey(), bounds=True, unknown="<unk>").fit(TEXT)
        chain.write(tmp_path / "model.arpa")
        peer = kenlm.Model(str(tmp_path / "model.arpa"))
        test = [*TEXT, ["cat", "zebra", "the"]]
        for row, found in zip(test, chain.score_samples(test), strict=True):
            assert peer.score(" ".join(row)) * math.log(10) == pytest.approx(found, rel=1e-5)


GOOD = "\\data\\\nngram 1=3\nngram 2=1\n\n"
GOOD += "\\1-grams:\n-1\ta\t-0.5\n-1\tb\n-99\t<s>\t0\n\n\\2-grams:\n-0.3\ta b\n\n\\end\\\n"


def test_a_small_arpa_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "small.arpa").write_text("a remark\n" + GOOD)
    chain = sf.read(tmp_path / "small.arpa")
    assert chain.states_ == ("a", "b")
    assert chain.probability("b", "a") == pytest.approx(10**-0.3)
    assert chain.probability("a", "a") == pytest.approx(10**-1.5)
    assert chain.probability("a", "b") == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "data", "no line"),
        ("ngram 1=3", "ngram 1=x", "expected"),
        ("-1\tb", "-1\ta", "twice"),
        ("-1\tb", "x\tb", "numbers"),
        ("-1\tb", "3\tb", "no probabilities"),
        ("a b", "a c", "'c'"),
        ("ngram 2=1", "ngram 2=2", "expected"),
        ("\\end\\", "", "end"),
        ("ngram 2=1\n", "", "a log10 probability and 1 words"),
        ("\\2-grams:", "\\3-grams:", "expected"),
    ],
)
def test_broken_arpa_files_say_where(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "broken.arpa").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(sf.FileFormatError, match=message):
        sf.read(tmp_path / "broken.arpa")


def test_what_an_arpa_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    mixture = sf.DirichletMixture(weights=[0.5, 0.5], alphas=[[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(sf.OptionError, match="mixtures"):
        sf.MarkovChain(prior=mixture).fit(["ab"]).write(tmp_path / "m.arpa")
    with pytest.raises(sf.OptionError, match="without blanks"):
        sf.MarkovChain().fit([["a b", "c"]]).write(tmp_path / "m.arpa")
    with pytest.raises(sf.OptionError, match="Markov chains"):
        sf.Normal().fit([1.0, 2.0]).write(tmp_path / "m.arpa")
