"""What a chain CRF learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.engines.label_scores import Packing
from suffice.errors import FileFormatError
from suffice.models.chain_crf.decoding import ChainDecoder
from suffice.models.chain_crf.features import FeatureSpace
from suffice.models.chain_crf.structure import ChainStructure
from suffice.models.conditional_field.fitted import FieldFitted, read_weights
from suffice.records import checked

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class ChainCRFFitted(FieldFitted[ChainStructure]):
    """Weights of features for labels, and of labels for the next ones."""

    @property
    def title(self) -> str:
        """The first line of the receipt."""
        return f"ChainCRF, {self.structure.size} labels, {self.structure.space.width:,} features"

    def decoder(self, threads: int | None = None) -> ChainDecoder:
        """The weights, asked about sequences."""
        return ChainDecoder(self.structure, self.weights, threads)

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.chain_crf.portrait import portrait_of

        return portrait_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        structure = self.structure
        return {
            "space": {
                "kind": structure.space.kind,
                "width": structure.space.width,
                "names": list(structure.space.names),
                "bias": structure.space.bias,
            },
            "labels": list(structure.labels),
            "pointers": structure.packing.pointers,
            "pair_labels": structure.packing.labels,
            "free": structure.free,
            "allowed": structure.allowed,
            "ends": structure.ends,
            "boundaries": structure.boundaries,
            "conditioned": structure.conditioned,
            **super().to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ChainCRFFitted:
        """Rebuild from plain data; parts that do not fit one another are an error."""
        space = plain["space"]
        labels = tuple(plain["labels"])
        packing = Packing(
            np.ascontiguousarray(plain["pointers"], np.int64),
            np.ascontiguousarray(plain["pair_labels"], np.int32),
            len(labels),
        )
        structure = ChainStructure(
            packing,
            np.asarray(plain["free"], np.bool_),
            np.asarray(plain["allowed"], np.bool_),
            np.asarray(plain["ends"], np.bool_),
            bool(plain["boundaries"]),
            np.asarray(plain["conditioned"], np.int64),
            checked(FeatureSpace(space["kind"], space["width"], tuple(space["names"]), space["bias"])),
            labels,
        )
        _check_parts(structure)
        return cls(structure=structure, **read_weights(plain, structure.length, "ChainCRF"))


def _check_parts(structure: ChainStructure) -> None:
    """Refuse a file whose parts do not fit: compiled loops trust them."""
    size, packing, width = structure.size, structure.packing, structure.space.width
    pointers = packing.pointers
    fine = (
        structure.space.kind in ("named", "columns", "hashed")
        and structure.free.shape == structure.allowed.shape == (size, size)
        and structure.ends.shape == (2, size)
        and pointers.shape == (width + 1,)
        and pointers[0] == 0
        and pointers[-1] == len(packing.labels)
        and (np.diff(pointers) >= 0).all()
        and ((packing.labels >= 0) & (packing.labels < size)).all()
        and ((structure.conditioned >= 0) & (structure.conditioned < width)).all()
        and (structure.space.kind != "named" or len(structure.space.names) == width - structure.space.bias)
    )
    if not fine:
        raise FileFormatError("The ChainCRF in this file is damaged: its labels and features do not fit one another.")
