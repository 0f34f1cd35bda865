"""Kinds of errors of coefficients that need more than a word: of rows in clusters, and of rows that follow in time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from suffice.calls import explain_methods
from suffice.checks import choice, is_list, is_name, truth, whole_number
from suffice.choices import ClusterCorrection, Covariance, LagKernel, choices
from suffice.errors import OptionError, shortened
from suffice.records import fields_of

#: The names of the sandwich of White (1980), which a fit makes along with its information.
WHITE = ("robust", "HC0")
#: What names a column, or the columns of two-way clusters.
Columns = tuple[Hashable, ...]


@explain_methods
@dataclass(frozen=True, eq=False)
class Clustered:
    """Errors that let rows of one cluster depend on one another: a sandwich of the sums of scores in each cluster.

    Args:
        groups: the column that says the cluster of each row, or two in a list for two-way clusters (Cameron, Gelbach
            and Miller 2011); or an array with an entry for each row, or a list of two such arrays.
        correction: of few clusters G and rows n with k coefficients: "full", G / (G - 1) (n - 1) / (n - k), as
            statsmodels, Stata's regress and R's vcovCL(type="HC1"); "groups", G / (G - 1), as Stata's logit, poisson
            and glm and R's vcovCL(type="HC0"); or "none".
    """

    groups: Any
    correction: ClusterCorrection = "full"

    def __post_init__(self) -> None:
        """Check the options."""
        choice(self.correction, "correction", choices(ClusterCorrection))
        if self.groups is None or isinstance(self.groups, Mapping) or not self.keys:
            raise OptionError(
                f"groups is {shortened(self.groups)}; expected the name of a column, two names in a list, or an array."
            )
        if len(self.keys) > 2:
            raise OptionError(f"groups has {len(self.keys)} columns; clusters are of one way or of two.")

    @property
    def keys(self) -> tuple[Any, ...]:
        """Names or arrays: one, or two."""
        if isinstance(self.groups, np.ndarray) and self.groups.ndim == 2:
            return tuple(self.groups.T)
        if not is_list(self.groups):
            return (self.groups,)
        named = [isinstance(one, str) for one in self.groups]
        if (all(named) and len(named) <= 3) or not any(is_name(one) for one in self.groups):
            return tuple(self.groups)
        return (np.asarray(self.groups),)

    @property
    def columns(self) -> Columns:
        """Those that are named, which are no explanatory columns."""
        return tuple(key for key in self.keys if isinstance(key, str))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        listed = [key if isinstance(key, str) else np.asarray(key).tolist() for key in self.keys]
        return {"groups": listed[0] if len(listed) == 1 else listed, "correction": self.correction}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        return cls(**plain)


@explain_methods
@dataclass(frozen=True, eq=False)
class NeweyWest:
    """Errors of rows in time, of which those some steps apart depend on one another (HAC, Newey and West 1987).

    Args:
        lags: how many steps; ``floor(4 (n / 100)^(2/9))`` unless said.
        kernel: how what is further apart counts less: "bartlett", ``1 - lag / (lags + 1)``, or "uniform".
        order: the column by which rows are sorted; as they come unless said.
        correction: whether the covariance is multiplied by n / (n - k), as Stata's newey does.
    """

    lags: int | None = None
    kernel: LagKernel = "bartlett"
    order: str | None = None
    correction: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        choice(self.kernel, "kernel", choices(LagKernel))
        truth(self.correction, "correction")
        if self.lags is not None:
            whole_number(self.lags, "lags", least=0)
        if not isinstance(self.order, str | None):
            raise OptionError(f"order is {shortened(self.order)}; expected the name of a column, or None.")

    @property
    def columns(self) -> Columns:
        """Those that are named, which are no explanatory columns."""
        return () if self.order is None else (self.order,)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return dict(fields_of(self))

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        return cls(**plain)


#: A kind of errors: a word, or clusters or time with their options.
Errors = Covariance | Clustered | NeweyWest


def checked_kind(covariance: object) -> Errors:
    """A kind of errors, or an error of its own."""
    if isinstance(covariance, Clustered | NeweyWest):
        return covariance
    if isinstance(covariance, type):
        raise OptionError(
            f"covariance is the class {covariance.__name__}; give one with its options, as Clustered('firm')."
        )
    word: Covariance = choice(covariance, "covariance", choices(Covariance))
    return word


def columns_of(covariance: object) -> tuple[Hashable, ...]:
    """The columns that a kind of errors names, which are no explanatory ones."""
    return covariance.columns if isinstance(covariance, Clustered | NeweyWest) else ()
