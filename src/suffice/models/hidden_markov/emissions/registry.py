"""Which emission takes which distribution: one registry, open to those who write one of their own.

A user says `emission=Normal()` or whatever else; the first kind that takes it builds the `Emission` of a fit. Kinds are
asked from the latest registered to the first, so that a new one may also take over what another one took; then those
that other packages offer as entry points of the group ``suffice.emissions``, for what nobody here takes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Variable
from suffice.errors import OptionError
from suffice.models.hidden_markov.emissions.contract import Emission
from suffice.models.hidden_markov.emissions.surveys import Survey
from suffice.registry import Registry

Columns = Sequence[NDArray[Any]]


@dataclass(frozen=True)
class EmissionOptions:
    """What a user says besides the distribution: number of states, covariances, floor, prior, and the estimate.

    `variables` are the columns whose type brings their states, by number; `weights` (steps,) those of the steps.
    """

    size: int
    covariance: str = "full"
    floor: float = 1e-6
    prior: Any = None
    estimate: str | None = None
    hidden: bool = True
    variables: tuple[Variable | None, ...] | None = None
    weights: Floats | None = None

    def weighted(self, steps: int) -> Floats:
        """The weights of so many steps."""
        return np.ones(steps) if self.weights is None else self.weights

    def of_distribution(self, distribution: Any) -> Any:
        """The prior of a distribution: its own, else the one for all."""
        own = distribution.get_params(deep=False).get("prior")
        return self.prior if own is None else own

    def check_estimate(self, distribution: Any, *, symbols: bool) -> None:
        """Refuse an estimate of the distribution's own that could change nothing."""
        own = distribution.get_params(deep=False).get("estimate")
        if own is None:
            return
        prior = self.of_distribution(distribution)
        if (own == "mle") != (prior is None):
            raise OptionError(f"estimate={own!r} of an emission {'needs a prior=' if prior is None else 'takes none'}.")
        if own == "mean" and self.hidden and not symbols:
            raise OptionError(
                "estimate='mean' has no effect on the density of a hidden state: EM climbs to the mode, estimate='map'."
            )

    def estimate_of(self, distribution: Any) -> str | None:
        """How pseudo-counts are taken: as the distribution says, else as the model says."""
        own = distribution.get_params(deep=False).get("estimate")
        return own or self.estimate

    def density_estimate_of(self, distribution: Any) -> str:
        """How a density is taken from its posterior: the mode in EM, which climbs to it; else as was said, or the mean.

        A mean is no maximum, so that EM could not climb to it.
        """
        return "map" if self.hidden else self.estimate_of(distribution) or "mean"

    def of_column(self, column: int) -> EmissionOptions:
        """For one of several columns."""
        return replace(self, variables=None if self.variables is None else (self.variables[column],))


class EmissionKind(Protocol):
    """A kind of emission."""

    def takes(self, distribution: Any, options: EmissionOptions, width: int) -> bool:
        """Whether it is the kind for a distribution, as a user gives it, of so many columns."""

    def build(
        self,
        distribution: Any,
        options: EmissionOptions,
        columns: Columns,
        names: Sequence[Any] | None,
        known: Mapping[str, Any],
    ) -> Emission:
        """The emission of some columns; `known` holds what an earlier fit had settled, see `Emission.describe`."""


@runtime_checkable
class SurveyedKind(EmissionKind, Protocol):
    """A kind whose emission is built from a survey of tables that are not in memory; others have these read first."""

    def variables(
        self, distribution: Any, options: EmissionOptions, names: Sequence[Hashable]
    ) -> list[Variable] | None:
        """What the columns of a table hold; None where a survey does not say enough about them."""

    def survey(self, distribution: Any, options: EmissionOptions, columns: Columns, names: Sequence[Any]) -> Survey:
        """What some rows of these columns say; `options.variables` are those of the rows."""


_kinds: Registry[EmissionKind] = Registry("suffice.emissions", "a kind of emission")


def register_emission(name: str, kind: EmissionKind) -> None:
    """Enter a kind of emission by name; one of the same name is replaced."""
    if name in _kinds.own():
        _kinds.remove(name)
    _kinds.register(name, lambda: kind)


def kind_for(distribution: Any, options: EmissionOptions, width: int) -> EmissionKind | None:
    """The kind that takes a distribution; None where none does."""
    return next((kind for kind in _asked() if kind.takes(distribution, options, width)), None)


def _asked() -> Iterator[EmissionKind]:
    own = _kinds.own()
    yield from (_kinds[name] for name in reversed(own))
    yield from (_kinds[name] for name in _kinds.names()[len(own) :])
