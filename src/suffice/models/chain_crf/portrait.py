"""What there is to see of a chain CRF."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import TYPE_CHECKING, Any

from suffice.domain import Domain, Variable
from suffice.errors import OptionError
from suffice.fitting.portrait import NamedMatrix, Portrait, Weight, matrix_grid
from suffice.models.chain_crf.top_weights import top_features, top_transitions
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.chain_crf.fitted import ChainCRFFitted

#: Weights that a page shows, and that are printed.
MOST_SHOWN, MOST_PRINTED = 20, 10


def portrait_of(fitted: ChainCRFFitted) -> Portrait:
    """Weights of labels that follow one another, and the largest weights of features."""
    structure = fitted.structure
    labels = structure.labels

    def transitions() -> NamedMatrix:
        return NamedMatrix(labels, labels, structure.transitions(fitted.weights), signed=True)

    return Portrait(
        title="ChainCRF",
        kind="crf",
        facts={"labels": labels, "features": len(structure.space.labels)},
        n_params=lambda: fitted.n_params,
        parameters=lambda: {name: weight for name, weight in fitted.named_weights().items() if weight != 0.0},
        text=partial(_text, fitted),
        tables=[
            lambda: matrix_grid("Weights of transitions", labels, labels, transitions().values, "signed"),
            partial(_largest, fitted),
        ],
        table=partial(_table, fitted),
        transitions=transitions,
        top_features=partial(_heaviest, fitted),
    )


def _largest(fitted: ChainCRFFitted) -> Any:
    top = top_features(fitted, MOST_SHOWN)
    names = [f"{one.feature} → {one.label}" for one in top]
    return matrix_grid("Largest weights", names, ["weight"], [one.weight for one in top], "signed")


def _heaviest(fitted: ChainCRFFitted, n: int, label: Hashable) -> list[Weight]:
    """The n weights that are largest in size, those of one label or of all."""
    both = {*top_features(fitted, n, label=label), *top_features(fitted, n, label=label, lowest=True)}
    heaviest = sorted(both, key=lambda one: (-abs(one.weight), str(one.feature), str(one.label)))[:n]
    return [Weight(*one) for one in heaviest]


def _table(fitted: ChainCRFFitted, name: Any) -> Table:
    if name != "transitions":
        raise OptionError(f"A ChainCRF has the table 'transitions', not {name!r}.")
    axes = [Variable.discrete(axis, fitted.structure.labels) for axis in ("label", "next")]
    return Table(Domain(axes), fitted.structure.transitions(fitted.weights))


def _text(fitted: ChainCRFFitted) -> str:
    top = [f"{w.weight:>10.4f}  {w.feature} {w.label}" for w in top_features(fitted, MOST_PRINTED)]
    steps = [f"{w.weight:>10.4f}  {w.before} -> {w.after}" for w in top_transitions(fitted, MOST_PRINTED)]
    return "\n".join(["largest weights of features", *top, "", "largest weights of transitions", *steps])
