"""The arrays that the package speaks of, by what they hold; shapes stand in docstrings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]
States: TypeAlias = NDArray[np.uint8]
Words: TypeAlias = NDArray[np.uint64]
"""64 bits each: positions in flat arrays, packed codes, keys of hash tables."""

Words32: TypeAlias = NDArray[np.uint32]
Indices: TypeAlias = NDArray[np.intp]
AnyInts: TypeAlias = NDArray[np.integer[Any]]
"""Whole numbers of any width: compiled loops are made for each that comes."""

Numbers: TypeAlias = NDArray[Any]
"""Numbers of more than one kind, where a function takes counts as well as weights."""

Index: TypeAlias = np.uint64
"""A place in a flat array: signed ones would keep LLVM from making vectors."""

RandomState: TypeAlias = (
    "int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None"
)
"""What `numpy.random.default_rng` takes."""

Span: TypeAlias = tuple[int, int]
"""From the first to before the last."""
