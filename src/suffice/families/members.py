"""Many members of one exponential family at once, as hidden states and components of mixtures have them.

`Categoricals`, `Normals` and `MultivariateNormals` are the same for the families whose formulas are worth an axis of
their own; this form serves any other one through its statistics T, base measure h and log-normaliser A.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.errors import EstimateError, OptionError
from suffice.families.member import FamilyMember


@dataclass(frozen=True, eq=False)
class Members:
    """Members of `family`, one for each row of parameters (K, p), in the order of their names.

    Statistics of a cell are the weight of its values (K,), their sums of T (K, k) and of log h (K,).
    """

    family: FamilyMember
    rows: Floats

    def parameters(self, row: Floats) -> dict[str, Any]:
        """Parameters by name; a family of one vector has it as its only parameter."""
        names = self.family.parameter_names
        if len(names) == 1 and len(row) > 1:
            return {names[0]: row}
        return dict(zip(names, map(float, row), strict=True))

    @cached_property
    def each(self) -> list[FamilyMember]:
        """The members one by one."""
        return [self.family.at(self.parameters(row)) for row in self.rows]

    @property
    def natural(self) -> Floats:
        """Natural parameters (K, k); +-inf at the edge of the family."""
        return np.array([self.family.to_natural(self.parameters(row)) for row in self.rows])

    @property
    def concentration(self) -> Floats:
        """How narrow each is (K,); see `FamilyMember.concentration`."""
        return np.array([member.concentration() for member in self.each])

    def log_prob(self, values: Floats, statistics: Floats, base: Floats) -> Floats:
        """Eta . T - A + log h of values with T (n, k) and log h (n,) in each cell (n, K)."""
        logs = np.empty((len(values), len(self.rows)))
        for cell, eta in enumerate(self.natural):
            if np.isfinite(eta).all():
                logs[:, cell] = statistics @ eta - self.family.log_normalizer(eta) + base
            else:  # At the edge of the family eta . T may be inf - inf.
                logs[:, cell] = self.each[cell].log_prob(values)
        return logs

    def log_likelihood(self, weight: Floats, sums: Floats, base: Floats) -> Floats:
        """Eta . sum T - N A + sum log h (K,), with 0 for a statistic that was never seen."""
        eta = self.natural
        normalizers = np.array([self.family.log_normalizer(row) for row in eta])
        return np.asarray((np.where(sums == 0, 0.0, eta) * sums).sum(axis=1) - weight * normalizers + base)

    def decrement(self, cell: int, mean: Floats) -> float | None:
        """Half the squared Newton decrement at a mean of T, in nats per value; None at the edge of the family.

        The log-likelihood is concave in the natural parameters, with the covariance of T as its curvature.
        """
        eta = self.natural[cell]
        if not np.isfinite(eta).all():
            return None
        slope = mean - self.family.expected_statistics(eta)
        step = np.linalg.lstsq(self.family.statistics_covariance(eta), slope, rcond=None)[0]
        return max(0.5 * float(slope @ step), 0.0)

    def sample(self, cells: NDArray[np.intp], random: np.random.Generator) -> NDArray[Any]:
        """One draw of each cell asked for (n, ...)."""
        drawn = [
            np.asarray(one.sample(int((cells == k).sum()), random_state=random)) for k, one in enumerate(self.each)
        ]
        values = np.empty((len(cells), *drawn[0].shape[1:]), drawn[0].dtype)
        for cell, own in enumerate(drawn):
            values[cells == cell] = own
        return values


def row_of(family: FamilyMember, parameters: Any) -> Floats:
    """Parameters by name as one row (p,)."""
    return np.concatenate([np.atleast_1d(parameters[name]) for name in family.parameter_names]).astype(np.float64)


def most_likely_row(family: FamilyMember, mean: Floats, most: float = np.inf) -> Floats | None:
    """Parameters (p,) whose E[T] is nearest to `mean`, of a concentration of at most `most`; None for none."""
    try:
        with np.errstate(all="ignore"):
            member = family.at(family.from_mean(mean))
    except (np.linalg.LinAlgError, FloatingPointError, ZeroDivisionError, EstimateError, OptionError):
        member = None
    if member is not None and member.concentration() <= most:
        return row_of(family, member.parameters_)
    if not np.isfinite(most) or not np.isfinite(mean).all() or not family.is_possible(mean):
        return None
    best = family.narrowest(mean, most)
    return None if best is None else row_of(family, best)
