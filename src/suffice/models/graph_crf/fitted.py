"""What a graph CRF learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from suffice.array_types import Floats
from suffice.checks import choice
from suffice.errors import FileFormatError, OptionError, SizeError
from suffice.models.conditional_field.fitted import FieldFitted, read_weights
from suffice.models.graph_crf.decoding import GraphDecoder
from suffice.models.graph_crf.graphs import EDGES
from suffice.models.graph_crf.objective import Engine
from suffice.models.graph_crf.structure import CliqueStructure, make_structure

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


@dataclass(frozen=True, eq=False)
class GraphCRFFitted(FieldFitted[CliqueStructure]):
    """Weights of cliques of each template; `forms` are those of the templates, as options give them."""

    forms: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def title(self) -> str:
        """The first line of the receipt."""
        features = self.structure.templates[0].features
        return f"GraphCRF, {self.structure.size} labels, {features:,} features of nodes"

    def template_weights(self, name: str) -> Floats:
        """The weights of a template as they act, (label, ..., label, feature)."""
        names = [template.name for template in self.structure.templates]
        number = names.index(choice(name, "name", names))
        return self.structure.templates[number].whole(self.structure.block(self.weights, number))

    def decoder(self, engine: Engine | None = None, random_state: int | None = 0) -> GraphDecoder:
        """The weights, asked about graphs by an engine, the usual one unless given."""
        return GraphDecoder(self.structure, self.weights, Engine() if engine is None else engine, random_state)

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.graph_crf.portrait import portrait_of

        return portrait_of(self)

    def tabulated(self) -> dict[str, Any]:
        """The forms of the templates, with functions as the numbers they gave."""
        forms = {}
        for template in self.structure.templates[1:]:
            form = self.forms[template.name]
            if callable(form) and template.matrix is not None:
                form = template.matrix.reshape(*template.shape, template.rows)
            forms[template.name] = form
        return forms

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "labels": list(self.structure.labels),
            "widths": {name: list(width) for name, width in self.structure.widths.items()},
            "forms": self.tabulated(),
            **super().to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> GraphCRFFitted:
        """Rebuild from plain data; parts that do not fit one another are an error."""
        try:
            widths = {str(name): (int(size), int(width)) for name, (size, width) in plain["widths"].items()}
            forms = dict(plain["forms"])
            rest = {name: form for name, form in forms.items() if name != EDGES}
            structure = make_structure(tuple(plain["labels"]), widths, forms[EDGES], rest)
        except (KeyError, OptionError, SizeError, TypeError, ValueError) as error:
            raise FileFormatError(f"The GraphCRF in this file is damaged: {error}.") from error
        return cls(structure=structure, forms=forms, **read_weights(plain, structure.length, "GraphCRF"))
