"""How good predicted labels are: token by token, label by label, and chunk by chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from suffice.errors import DataError, require
from suffice.models.conditional_field.labels import label_key

#: What the label of a token inside of a chunk begins with.
PREFIXES = ("B", "I", "E", "S", "L", "U")


class Rates(NamedTuple):
    """Precision ``hits / found``, recall ``hits / support`` and their harmonic mean; 0 where nothing was there."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Evaluation:
    """Token accuracy, the rates of each label and, for chunk labels (``B-x``, ``I-x``, ``O``), of each type of chunk.

    Chunk labels without types (``B``, ``I``, ``O``) have one type of chunk, whose name is empty.

    `spans` is None where the labels are no chunk labels; `span_f1` is then None too. A chunk counts as found when its
    type, its first and its last token are right.
    """

    accuracy: float
    sequence_accuracy: float
    labels: dict[Any, Rates]
    spans: dict[str, Rates] | None
    all_spans: Rates | None

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the labels."""
        return sum(rates.f1 for rates in self.labels.values()) / max(len(self.labels), 1)

    @property
    def span_f1(self) -> float | None:
        """F1 over all chunks."""
        return None if self.all_spans is None else self.all_spans.f1

    def __str__(self) -> str:
        """A table with one line for each label and each type of chunk."""
        lines = [f"token accuracy {self.accuracy:.4f}, whole sequences {self.sequence_accuracy:.4f}"]
        head = f"{'precision':>10}{'recall':>9}{'F1':>9}{'support':>9}"
        for title, rates in (("label", self.labels), ("chunk", self.spans)):
            if rates is None:
                continue
            width = max(8, *(len(str(name)) + 2 for name in rates)) if rates else 8
            lines.append(f"{title:<{width}}{head}")
            shown = dict(rates)
            if title == "chunk" and self.all_spans is not None:
                shown["all"] = self.all_spans
            lines += [
                f"{name!s:<{width}}{r.precision:>10.4f}{r.recall:>9.4f}{r.f1:>9.4f}{r.support:>9}"
                for name, r in shown.items()
            ]
        return "\n".join(lines)

    __repr__ = __str__

    def to_frame(self) -> Any:
        """The rates as a pandas DataFrame: labels, then chunks."""
        pd = require("pandas", extra="all", purpose="to_frame")

        rows = [("label", name, *rates) for name, rates in self.labels.items()]
        rows += [("chunk", name, *rates) for name, rates in (self.spans or {}).items()]
        return pd.DataFrame(rows, columns=["kind", "name", "precision", "recall", "f1", "support"])


@dataclass(frozen=True)
class LabelTally:
    """How often each name was given, predicted, and both at one place."""

    support: Counter[Any]
    predicted: Counter[Any]
    right: Counter[Any]

    def __add__(self, other: LabelTally) -> LabelTally:
        """Of both sets of examples."""
        return LabelTally(self.support + other.support, self.predicted + other.predicted, self.right + other.right)

    def rates(self, name: Any) -> Rates:
        """Of one name."""
        return _rates(self.right[name], self.predicted[name], self.support[name])

    def total(self) -> Rates:
        """Of all names together."""
        return _rates(self.right.total(), self.predicted.total(), self.support.total())


@dataclass(frozen=True)
class Agreement:
    """What some examples say about predicted labels; examples in several places add up.

    `labels` are counted by what tells them apart, `names` are the labels themselves; `spans` are chunks by type, None
    where some label is no chunk label.
    """

    tokens: int
    hits: int
    examples: int
    whole: int
    names: dict[Any, Any]
    labels: LabelTally
    spans: LabelTally | None

    @classmethod
    def of(cls, truth: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> Agreement:
        """Of sequences of labels, and of as many predictions."""
        if len(truth) != len(predicted):
            raise DataError(f"There are {len(truth)} sequences of labels and {len(predicted)} of predictions.")
        names: dict[Any, Any] = {}
        support, guesses, right = Counter[Any](), Counter[Any](), Counter[Any]()
        whole = 0
        for s, (true, guess) in enumerate(zip(truth, predicted, strict=True)):
            if len(true) != len(guess):
                raise DataError(f"Sequence {s} has {len(true)} labels and {len(guess)} predictions.")
            keys, guessed = [list(map(label_key, labels)) for labels in (true, guess)]
            for key, label in (*zip(keys, true, strict=True), *zip(guessed, guess, strict=True)):
                names.setdefault(key, label)
            same = [key for key, other in zip(keys, guessed, strict=True) if key == other]
            support.update(keys)
            guesses.update(guessed)
            right.update(same)
            whole += len(same) == len(keys)
        spans = _tally_of_spans(truth, predicted) if _of_chunks(names.values()) else None
        tally = LabelTally(support, guesses, right)
        return cls(support.total(), right.total(), len(truth), whole, names, tally, spans)

    def __add__(self, other: Agreement) -> Agreement:
        """Of both sets of examples."""
        return Agreement(
            self.tokens + other.tokens,
            self.hits + other.hits,
            self.examples + other.examples,
            self.whole + other.whole,
            {**other.names, **self.names},
            self.labels + other.labels,
            None if self.spans is None or other.spans is None else self.spans + other.spans,
        )

    def evaluation(self) -> Evaluation:
        """Shares and rates."""
        rates: dict[Any, Rates] = {}
        for key in _ordered(self.names):
            # A dict takes True and 1 for one key; the second of them is shown as text.
            name = repr(self.names[key]) if self.names[key] in rates else self.names[key]
            rates[name] = self.labels.rates(key)
        spans = self.spans if _chunked(list(self.names.values())) else None
        return Evaluation(
            self.hits / max(self.tokens, 1),
            self.whole / max(self.examples, 1),
            rates,
            None if spans is None else {kind: spans.rates(kind) for kind in sorted({*spans.support, *spans.predicted})},
            None if spans is None else spans.total(),
        )


def evaluate(truth: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> Evaluation:
    """Compare sequences of labels; chunks are read as the script of the CoNLL shared tasks reads them."""
    return Agreement.of(truth, predicted).evaluation()


def chunks(labels: Iterable[Any]) -> set[tuple[int, int, str]]:
    """Chunks (first, last, type) of one sequence of labels.

    A chunk begins at ``B`` or ``S``, and at any other prefix after ``O``, ``E`` or ``S``, or after another type; it
    ends before a chunk begins, before ``O``, and at ``E`` or ``S``.
    """
    spans = set()
    start, kind, closed = -1, "", True
    token = -1
    for token, label in enumerate(labels):
        prefix, _, now = str(label).partition("-")
        inside = prefix not in ("O", "")
        begins = inside and (start < 0 or closed or prefix in ("B", "S", "U") or now != kind)
        if start >= 0 and (begins or not inside):
            spans.add((start, token - 1, kind))
            start = -1
        if begins:
            start, kind = token, now
        closed = prefix in ("E", "S", "L", "U")
    if start >= 0:
        spans.add((start, token, kind))
    return spans


def _tally_of_spans(truth: Iterable[Any], predicted: Iterable[Any]) -> LabelTally:
    tally = LabelTally(Counter(), Counter(), Counter())
    for true, guess in zip(truth, predicted, strict=True):
        here, there = chunks(true), chunks(guess)
        for counts, spans in ((tally.support, here), (tally.predicted, there), (tally.right, here & there)):
            counts.update(kind for _, _, kind in spans)
    return tally


def _rates(hits: int, predictions: int, support: int) -> Rates:
    precision = hits / predictions if predictions else 0.0
    recall = hits / support if support else 0.0
    f1 = 2.0 * precision * recall / (precision + recall) if hits else 0.0
    return Rates(precision, recall, f1, support)


def _of_chunks(names: Iterable[Any]) -> bool:
    """Whether all labels may be those of chunks."""
    return all(isinstance(name, str) and (name == "O" or name.partition("-")[0] in PREFIXES) for name in names)


def _chunked(names: Sequence[Any]) -> bool:
    """Whether the labels are chunk labels, all of them with types (``B-x``) or all without (``B``, ``I``, ``O``)."""
    inside = [name for name in names if name != "O"]
    if not inside or not _of_chunks(inside):
        return False
    typed = [bool(name.partition("-")[2]) for name in inside]
    # Lone letters such as E may be anything; O beside them, or B and I together, say that they are chunks.
    return all(typed) or (not any(typed) and ("O" in names or {"B", "I"} <= set(names)))


def _ordered(labels: dict[Any, Any]) -> list[Any]:
    """The keys, in the order of their labels where they have one."""
    try:
        return sorted(labels, key=lambda key: labels[key])
    except TypeError:
        return sorted(labels, key=lambda key: (type(labels[key]).__name__, repr(labels[key])))
