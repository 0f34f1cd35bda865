"""Which weights a chain has, and which steps from label to label are possible at all."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.checks import is_list, is_name
from suffice.engines.label_scores import Matrix, Packing, label_pairs
from suffice.errors import DataError, OptionError, listing, shortened
from suffice.models.chain_crf.features import FeatureSpace
from suffice.models.chain_crf.layout import ChainLayout
from suffice.models.conditional_field.labels import counted, label_codes, label_key

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChainStructure(ChainLayout):
    """The weights of a chain, with the names of its features and labels."""

    space: FeatureSpace
    labels: tuple[Any, ...]

    @cached_property
    def layout(self) -> ChainLayout:
        """The numbers alone."""
        return self._with(self.packing, self.conditioned)

    def names(self) -> list[tuple[Any, ...]]:
        """The name of each weight: ("state", feature, label), ("transition", from, to) and so on."""
        features, labels = self.space.labels, self.labels
        names: list[tuple[Any, ...]] = [
            ("state", features[f], labels[j])
            for f, j in zip(self.packing.features.tolist(), self.packing.labels.tolist(), strict=True)
        ]
        names += [("transition", labels[i], labels[j]) for i, j in np.argwhere(self.free).tolist()]
        if self.boundaries:
            names += [(("start", "end")[e], labels[j]) for e, j in np.argwhere(self.ends).tolist()]
        cells = np.argwhere(self.allowed).tolist()
        names += [("transition", features[f], labels[i], labels[j]) for f in self.conditioned for i, j in cells]
        return names


@dataclass(frozen=True)
class ChainWeightOptions:
    """What the user says about the weights; None in the first two: all for arrays, those seen for named features."""

    all_states: bool | None = None
    all_transitions: bool | None = None
    boundaries: bool = False
    conditioned: Any = False
    constraints: Any = None


@dataclass(frozen=True, eq=False)
class SeenLabels:
    """What labelled sequences show of the weights there may be.

    `pairs` are the keys ``feature * K + label`` of all pairs that occur, rising, entries of value 0 included;
    `transitions` (K, K) counts the labels that follow one another, `ends` (2, K) the first and the last labels.
    """

    pairs: Ints
    transitions: Ints
    ends: Ints

    @classmethod
    def of(cls, design: Matrix, codes: Ints, offsets: Ints, size: int) -> SeenLabels:
        """Those of the sequences of a design, codes (steps,) of their labels."""
        inner = np.ones(len(codes), np.bool_)
        inner[offsets[:-1]] = False
        after = np.flatnonzero(inner)
        moves = np.bincount(codes[after - 1] * size + codes[after], minlength=size * size)
        ends = [np.bincount(codes[edge], minlength=size) for edge in (offsets[:-1], offsets[1:] - 1)]
        return cls(label_pairs(design, codes, size), moves.reshape(size, size), np.stack(ends))

    def __add__(self, other: SeenLabels) -> SeenLabels:
        """Those of both."""
        pairs = np.union1d(self.pairs, other.pairs)
        return SeenLabels(pairs, self.transitions + other.transitions, self.ends + other.ends)

    def of_columns(self, kept: Mask, *, renumber: bool) -> SeenLabels:
        """With the pairs of some columns alone (width,), which may be numbered anew."""
        size = len(self.transitions)
        features, labels = np.divmod(self.pairs, size)
        here = kept[features]
        columns = (np.cumsum(kept) - 1)[features] if renumber else features
        return SeenLabels((columns * size + labels)[here], self.transitions, self.ends)

    def check(self, allowed: Mask, ends: Mask, labels: tuple[Any, ...]) -> None:
        """Refuse labels that the constraints forbid."""
        wrong = [f"{labels[j]!r} after {labels[i]!r}" for i, j in np.argwhere((self.transitions > 0) & ~allowed)]
        outer = np.argwhere((self.ends > 0) & ~ends).tolist()
        wrong += [f"{labels[j]!r} at the {('start', 'end')[e]} of a sequence" for e, j in outer]
        if wrong:
            raise DataError(
                f"The data hold {listing(wrong)}, which constraints forbid. Mend the labels, or loosen the constraints."
            )


def structure_of(
    space: FeatureSpace,
    seen: SeenLabels,
    labels: tuple[Any, ...],
    wanted: ChainWeightOptions,
    earlier: ChainStructure | None = None,
    *,
    columns: Mask | None = None,
) -> ChainStructure:
    """The structure of what was seen; with an earlier one, its pairs as well.

    columns (width,): those that may have weights, all unless given.
    """
    size, numeric = len(labels), space.kind == "columns"
    allowed, ends = constraints_of(wanted.constraints, labels)
    seen.check(allowed, ends, labels)
    every = numeric if wanted.all_states is None else wanted.all_states
    open_columns = np.ones(space.width, np.bool_) if columns is None else columns
    packing = _all_pairs(open_columns, size) if every else _seen_pairs(space, seen.pairs, size, earlier)
    every = numeric if wanted.all_transitions is None else wanted.all_transitions
    free = allowed if every else allowed & _seen_transitions(seen.transitions > 0, earlier)
    conditioned = _conditioned(wanted.conditioned, space, open_columns)
    return ChainStructure(packing, free, allowed, ends, wanted.boundaries, conditioned, space, labels)


def _all_pairs(columns: Mask, size: int) -> Packing:
    pointers = np.concatenate(([0], np.cumsum(columns))).astype(np.int64) * size
    return Packing(pointers, np.tile(np.arange(size, dtype=np.int32), int(columns.sum())), size)


def _seen_pairs(space: FeatureSpace, keys: Ints, size: int, earlier: ChainStructure | None) -> Packing:
    """The pairs of some keys, and those of an earlier structure."""
    if earlier is not None:
        places = _moved(earlier, space)
        old = places[earlier.packing.features] * size + earlier.packing.labels
        keys = np.union1d(keys, old[places[earlier.packing.features] >= 0])
    features, labels = np.divmod(keys, size)
    pointers = np.concatenate(([0], np.cumsum(np.bincount(features, minlength=space.width))))
    return Packing(pointers.astype(np.int64), labels.astype(np.int32), size)


def _moved(earlier: ChainStructure, space: FeatureSpace) -> Ints:
    """Where the columns of an earlier structure are now; -1 where they are no more."""
    if space.kind != "named":
        return np.arange(earlier.space.width)
    columns = [space.places.get(name, -1) for name in earlier.space.names]
    return np.array(columns + [space.width - 1] * earlier.space.bias, np.int64)


def _seen_transitions(seen: Mask, earlier: ChainStructure | None) -> Mask:
    if earlier is not None:
        old = earlier.free
        seen[: len(old), : len(old)] |= old
    return seen


def _conditioned(wanted: Any, space: FeatureSpace, columns: Mask) -> Ints:
    """The columns that transitions depend on: none, all, or those named."""
    if wanted is None or wanted is False:
        return np.zeros(0, np.int64)
    if wanted is True:
        return np.flatnonzero(columns)
    if not (is_list(wanted) and all(map(is_name, wanted))):
        raise OptionError(
            f"conditioned_transitions is {shortened(wanted)}; expected True, False or a list of features."
        )
    places = {label: column for column, label in enumerate(space.labels)}
    missing = [name for name in wanted if name not in places]
    if missing:
        raise OptionError(
            f"conditioned_transitions names {listing(missing)}, which no step of the data has. Name features of "
            f"the data."
        )
    return np.array([places[name] for name in wanted], np.int64)


# -- what is possible --------------------------------------------------------------------------------------------------


def constraints_of(constraints: Any, labels: tuple[Any, ...]) -> tuple[Mask, Mask]:
    """Possible transitions (K, K), and possible first and last labels (2, K).

    "bio" and "bioes" ask of a label ``I-x`` that a label of the same x comes before; a list names what is forbidden:
    pairs (from, to), with None for the outside of the sequence.
    """
    size = len(labels)
    allowed, ends = np.ones((size, size), np.bool_), np.ones((2, size), np.bool_)
    if constraints is None:
        return allowed, ends
    if isinstance(constraints, str):
        return _chunk_rules(constraints, labels)
    if not is_list(constraints):
        raise OptionError(
            f"constraints is {shortened(constraints)}; expected 'bio', 'bioes' or a list of pairs (from, to)."
        )
    places = label_codes(labels)
    for pair in constraints:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise OptionError(f"constraints hold {pair!r}; expected pairs (from, to), 'bio' or 'bioes'.")
        unknown = [label for label in pair if label is not None and label_key(label) not in places]
        if unknown or pair[0] is pair[1] is None:
            raise OptionError(
                f"constraints hold {tuple(pair)!r}; the labels are {listing(labels)}, None is the outside."
            )
        before, after = pair
        if before is None:
            ends[0, places[label_key(after)]] = False
        elif after is None:
            ends[1, places[label_key(before)]] = False
        else:
            allowed[places[label_key(before)], places[label_key(after)]] = False
    return allowed, ends


def _chunk_rules(scheme: str, labels: tuple[Any, ...]) -> tuple[Mask, Mask]:
    """The rules of BIO labels, or of BIOES labels, where E and S end a chunk and every other chunk must be ended."""
    if scheme.lower() not in ("bio", "bioes", "iobes", "bilou"):
        raise OptionError(
            f"constraints is {scheme!r}; expected 'bio', 'bioes' ('bilou'), or a list of forbidden pairs."
        )
    whole = scheme.lower() != "bio"
    parts = [_chunk_parts(label) for label in labels]
    inside = {"I", "E", "L"}
    open_ends = {"B", "I"}

    def possible(before: tuple[str, str], after: tuple[str, str]) -> bool:
        goes_on = before[0] in (open_ends if whole else {"B", "I"}) and before[1] == after[1]
        if after[0] in inside:
            return goes_on
        return not (whole and before[0] in open_ends)

    allowed = np.array([[possible(before, after) for after in parts] for before in parts], np.bool_)
    first = np.array([part[0] not in inside for part in parts], np.bool_)
    last = np.array([not (whole and part[0] in open_ends) for part in parts], np.bool_)
    return allowed, np.stack((first, last))


def _chunk_parts(label: Hashable) -> tuple[str, str]:
    """Prefix and type of a chunk label; ``O`` has no type."""
    if not isinstance(label, str) or (label != "O" and label.partition("-")[0] not in {"B", "I", "E", "S", "L", "U"}):
        raise OptionError(f"The label {label!r} is no chunk label; expected 'O', 'B-type', 'I-type' and so on.")
    prefix, _, kind = label.partition("-")
    return prefix, kind


def check_paths(codes: Ints, offsets: Ints, allowed: Mask, ends: Mask, labels: tuple[Any, ...]) -> None:
    """Refuse labels that the constraints forbid, and say where they are."""
    inner = np.ones(len(codes), np.bool_)
    inner[offsets[:-1]] = False
    after = np.flatnonzero(inner)
    wrong = after[~allowed[codes[after - 1], codes[after]]]
    first = offsets[:-1][~ends[0, codes[offsets[:-1]]]]
    last = (offsets[1:] - 1)[~ends[1, codes[offsets[1:] - 1]]]
    for places, what in ((wrong, "after {!r}"), (first, "at the start"), (last, "at the end")):
        if len(places):
            step = int(places[0])
            s = int(np.searchsorted(offsets, step, side="right")) - 1
            where = what.format(labels[codes[step - 1]]) if step else what
            raise DataError(
                f"Sequence {s} of y, step {step - int(offsets[s])}: the label {labels[codes[step]]!r} {where} is "
                "forbidden by constraints. Mend the labels, or loosen the constraints."
            )


def check_lengths(structure: ChainStructure, offsets: Ints) -> None:
    """Refuse sequences so short, or of such a length, that the constraints leave them no path of labels at all."""
    allowed, ends = structure.allowed, structure.ends
    if allowed.all() and ends.all():
        return
    lengths = np.diff(offsets)
    possible = np.zeros(int(lengths.max(initial=0)) + 1, np.bool_)
    reached, met = ends[0], dict[bytes, int]()
    for length in range(1, len(possible)):
        if reached.tobytes() in met:  # From here on all lengths repeat those before.
            since = met[reached.tobytes()]
            rest = np.arange(length, len(possible))
            possible[rest] = possible[since + (rest - since) % (length - since)]
            break
        met[reached.tobytes()] = length
        possible[length] = bool((reached & ends[1]).any())
        reached = np.asarray(allowed[reached].any(axis=0))
    wrong = np.flatnonzero(~possible[lengths])
    if len(wrong):
        s = int(wrong[0])
        raise DataError(
            f"Sequence {s} of X has {counted(int(lengths[s]), 'step')}, and the constraints allow no labels for a "
            "sequence of this length. Leave it out, or loosen the constraints."
        )


def transfer(weights: Floats, earlier: ChainStructure, now: ChainStructure) -> Floats:
    """Weights of an earlier structure in the places of a new one; what is new is 0."""
    places = _moved(earlier, now.space)
    code = label_codes(now.labels)
    labels = np.array([code.get(label_key(label), -1) for label in earlier.labels], np.int64)
    vector = np.zeros(now.length)
    size = now.size

    def put(start: int, keys_now: Ints, keys_then: Ints, fine: Mask, values: Floats) -> None:
        order = np.argsort(keys_now, kind="stable")
        nearest = np.searchsorted(keys_now[order], keys_then[fine])
        nearest = np.minimum(nearest, max(len(order) - 1, 0))
        hit = keys_now[order][nearest] == keys_then[fine] if len(order) else np.zeros(0, np.bool_)
        if len(order):
            vector[start + order[nearest[hit]]] = values[fine][hit]

    then = (places[earlier.packing.features], labels[earlier.packing.labels])
    keys_now = now.packing.features * size + now.packing.labels
    put(0, keys_now, then[0] * size + then[1], (then[0] >= 0) & (then[1] >= 0), earlier.states(weights))
    cells, old = np.argwhere(now.free), labels[np.argwhere(earlier.free)].reshape(-1, 2)
    keys_now = cells[:, 0] * size + cells[:, 1]
    values = weights[earlier.bounds[0] : earlier.bounds[1]]
    put(now.bounds[0], keys_now, old[:, 0] * size + old[:, 1], np.asarray((old >= 0).all(axis=1)), values)
    if now.boundaries and earlier.boundaries:
        cells, old = np.argwhere(now.ends), np.argwhere(earlier.ends)
        moved = labels[old[:, 1]]
        values = weights[earlier.bounds[1] : earlier.bounds[2]]
        put(now.bounds[1], cells[:, 0] * size + cells[:, 1], old[:, 0] * size + moved, moved >= 0, values)
    _transfer_conditioned(vector, weights, earlier, now, places, labels)
    return vector


def _transfer_conditioned(
    vector: Floats, weights: Floats, earlier: ChainStructure, now: ChainStructure, places: Ints, labels: Ints
) -> None:
    """The part of `transfer` that concerns transitions that depend on features."""
    if not len(earlier.conditioned) or not len(now.conditioned) or (labels < 0).any():
        return
    old, new = earlier.conditioned_weights(weights), np.zeros((len(now.conditioned), now.size, now.size))
    place_of = {int(column): number for number, column in enumerate(now.conditioned)}
    for column, matrix in zip(places[earlier.conditioned].tolist(), old, strict=True):
        if column in place_of:
            new[place_of[column]][np.ix_(labels, labels)] = matrix
    vector[now.bounds[2] :] = new[:, now.allowed].ravel()
