"""What a generalised linear model learns: coefficients, their information and the figures of the fit, no rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import read_only
from suffice.errors import FileFormatError, NotFittedError
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.design import Design
from suffice.models.glm.family import ResponseFamily, RowDistribution
from suffice.models.glm.formula import specification_from_dict, specification_to_dict
from suffice.models.glm.registry import FAMILIES, one_predictor_family
from suffice.records import checked
from suffice.solvers.information import Information

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


_NONE = np.zeros(0)
#: A coefficient is not told by the rows where flat directions have more than this share of it.
UNTOLD = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True)
class GLMFitted(Coefficients):
    """The coefficients of a fit, how well the rows tell them, and its figures.

    The covariance of the coefficients is the inverse of `information`, in the engine's layout (predictors first where
    there are several), or `sandwich` (k, k) in the order of the names where that was asked for: `errors` says in words
    what it is made of, and `groups_df` is the number of clusters less one. Without rows to speak of the information has
    size 0. Thresholds of ordered labels come first in the covariance and in `iterates`.

    `dropped` are columns that say the same as others, and `corners` the coefficients that a Laplace prior holds at its
    centre, predictors first, both in the engine's layout: neither is estimated, and neither has an error.

    `specification` is what formulaic has made of a `formula`, and `response` the column of the response, where it has a
    name. `deviance`, `null_deviance` and `pearson` are sums over the rows of the fit, of which there were `weight`;
    `quasi`: some of them had a response that the family does not draw, such as a number between counts.
    """

    information: Information
    ml_dispersion: float = 1.0
    deviance: float = math.nan
    null_deviance: float = math.nan
    pearson: float = math.nan
    weight: float = 0.0
    df_resid: float = 0.0
    n_params: int = 0
    dropped: tuple[int, ...] = ()
    corners: tuple[int, ...] = ()
    sandwich: Floats | None = None
    errors: str = ""
    groups_df: float | None = None
    precision: Floats | None = None
    posterior: tuple[Floats, Floats, float, Any] | None = None
    updates: int = 0
    quasi: bool = False
    iterates: tuple[Floats, ...] = ()
    specification: Any = None
    formula: str | None = None
    response: str | None = None

    def __post_init__(self) -> None:
        """A fitted value is a value: its arrays cannot be written to."""
        for name in ("beta", "thresholds", "direction", "residual_covariance", "sandwich", "precision"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, read_only(array))

    @property
    def title(self) -> str:
        """The first line of the receipt."""
        return f"GLM, {self.family}, {self.link} link"

    @property
    def family_object(self) -> ResponseFamily:
        """The family of the response."""
        return FAMILIES[self.family]

    @property
    def free_dispersion(self) -> bool:
        """Whether the family has a dispersion."""
        return self.family_object.free_dispersion

    def row_distribution(self) -> RowDistribution:
        """Family and link, of a single linear predictor."""
        family = one_predictor_family(self.family, self.size)
        return RowDistribution(family, family.link(self.link))

    def score_samples(self, X: Any, y: Any = None, *, unknown: str = "raise", **rows: Any) -> Floats:
        """Log-likelihood of each row (n,), natural logarithm.

        Args:
            X: rows with the columns of the fit, as for `GLM.fit`.
            y: their response, or the name of its column.
            unknown: what a level that the fit has not seen does: "raise", or "pool" for the average effect.
            rows: offset, exposure, trials, columns, as for `GLM.fit`.
        """
        from suffice.models.glm.rowwise import figures_of_rows, log_prob_of

        scores: Floats = figures_of_rows(self, X, {"y": y, **rows}, unknown, log_prob_of, "log_probability")
        return scores

    # -- errors ------------------------------------------------------------------------------------------------------

    def covariance(self) -> Floats:
        """Of all coefficients in the order of the names: (k, k), or (m k, m k) with the predictors first."""
        if self.sandwich is not None:
            return self.sandwich
        self._check_information()
        m = self.beta.shape[1]
        if self.family == "multivariate_gaussian":
            assert self.residual_covariance is not None
            one = self._filled(self._inverse())
            return np.asarray(np.kron(self.residual_covariance, one), dtype=np.float64)
        if m == 1:
            return self._filled(self._inverse())
        return public_blocks(self.design, filled(self._inverse(), self.dropped, m), m)

    def _inverse(self) -> Floats:
        """Of the information, as if the coefficients at corners were known: 0 for these."""
        if not self.corners:
            return self.information.inverse()
        places = kept_places(self.dropped, self.parameters.size, self.beta.shape[1])
        free = np.flatnonzero(~np.isin(places, self.corners))
        inner = np.zeros((len(places), len(places)))
        inner[np.ix_(free, free)] = self.information.part(free).inverse()
        return inner

    def not_estimated(self) -> NDArray[np.bool_]:
        """Coefficients (k, m), by name, of columns that were dropped or that a Laplace prior holds at its centre."""
        k, m = self.parameters.size, self.beta.shape[1]
        held = np.ones(k * m, dtype=np.bool_)
        held[kept_places(self.dropped, k, m)] = False
        held[list(self.corners)] = True
        return np.asarray(self.parameters.public(held.reshape(m, k).T))

    def _check_information(self) -> None:
        if self.information.size == 0 and self.parameters.size:
            raise NotFittedError(
                "There are no standard errors: the solver made no information, or the rows had been written to when "
                "the model was copied or saved. Read standard_errors_ right after the fit."
            )

    def _filled(self, inner: Floats) -> Floats:
        """With zeros for coefficients that were left out, in the order of the names."""
        return self.parameters.public_matrix(filled(inner, self.dropped))

    def variances(self) -> Floats:
        """Of each coefficient (k, m), in the order of the names."""
        m, k = self.beta.shape[1], self.parameters.size
        if m > 1 or self.sandwich is not None or self.dropped or self.corners or self.family == "multivariate_gaussian":
            return np.diagonal(self.covariance()).reshape(m, k).T.copy()
        self._check_information()
        return self.parameters.public(self.information.inverse_diagonal())[:, None]

    def undetermined(self) -> NDArray[np.bool_]:
        """Coefficients (k, m) about which the rows say nothing, by name: no inverse of the information has an error.

        Those are the coefficients that a direction moves along which the information is 0, as it is of rows that
        separation decides, and of means that have run to an end of their range.
        """
        k, m = self.parameters.size, self.beta.shape[1]
        loose = np.zeros(k * m, dtype=np.bool_)
        if self.family != "multivariate_gaussian" and self.information.size and not self.information.definite:
            flat, scale = self.information.flat(), self.information._scale
            shares = (flat / np.where(scale > 0.0, scale, 1.0)[:, None]) ** 2
            loose[kept_places(self.dropped, k, m)] = shares.sum(axis=1) > UNTOLD
        return self.parameters.public(loose.reshape(m, k).T)

    def flat(self) -> Floats:
        """Directions (k, f), by name, along which the rows say nothing, of one linear predictor."""
        inner = self.information.flat()
        whole = np.zeros((self.parameters.size, inner.shape[1]))
        whole[kept_places(self.dropped, self.parameters.size, 1)] = inner
        return np.asarray(self.parameters.public(whole))

    def standard_errors(self) -> Floats:
        """Of all parameters (k, m); infinite where one is, or where the rows say nothing about it.

        NaN for those that were not estimated: of columns that were dropped, and at the centre of a Laplace prior.
        """
        roots = np.sqrt(np.maximum(self.variances(), 0.0))
        errors = np.where(np.isinf(self.limits()) | self.undetermined(), np.inf, roots)
        return np.where(self.not_estimated(), np.nan, errors)

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.glm.portrait import portrait_of

        return portrait_of(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _APART}
        lasting = self.information.lasting()
        listed = {name: list(getattr(self, name)) for name in ("dropped", "corners", "iterates")}
        return {
            **plain,
            **listed,
            **{name: None if math.isnan(plain[name]) else plain[name] for name in _NUMBERS},
            "design": self.design.to_dict(),
            "information": {name: getattr(lasting, name) for name in ("body", "cross", "levels", "root")},
            "classes": None if self.classes is None else list(self.classes),
            "posterior": None if self.posterior is None else list(self.posterior),
            "specification": None if self.specification is None else specification_to_dict(self.specification),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> GLMFitted:
        """Rebuild from plain data, checking shapes."""
        design = Design.from_dict(plain["design"])
        beta = np.asarray(plain["beta"], dtype=np.float64)
        if beta.ndim != 2 or len(beta) != design.size or not np.isfinite(beta).all():
            raise FileFormatError(f"The file has coefficients of shape {beta.shape} for {design.size} columns.")
        thresholds = np.asarray(plain.get("thresholds", _NONE), dtype=np.float64)
        labels = plain["classes"] if plain["family"] == "ordinal" else None
        if thresholds.shape != (0 if labels is None else len(labels) - 1,) or not np.isfinite(thresholds).all():
            raise FileFormatError(f"The file has thresholds of shape {thresholds.shape} for the labels {labels}.")
        classes, reference = plain["classes"], plain["reference"]
        if classes is not None and labels is None and len(classes) != beta.shape[1] + 1:
            raise FileFormatError(f"The file has {len(classes)} classes for {beta.shape[1]} linear predictors.")
        if reference is not None and not (classes is not None and reference in range(len(classes))):
            raise FileFormatError(f"The reference class has the number {reference!r}; the classes are {classes}.")
        specification, response = plain.get("specification"), plain.get("response")
        if not isinstance(response, str | None):
            raise FileFormatError(f"The response is {response!r}; expected the name of a column.")
        changed = {
            "design": design,
            "beta": beta,
            "thresholds": thresholds,
            "information": Information(**plain["information"]),
            "classes": None if plain["classes"] is None else tuple(plain["classes"]),
            "posterior": None if plain["posterior"] is None else tuple(plain["posterior"]),
            "specification": None if specification is None else specification_from_dict(specification),
            **{name: tuple(plain.get(name, ())) for name in ("dropped", "corners", "iterates")},
            **{name: math.nan if plain[name] is None else float(plain[name]) for name in _NUMBERS},
        }
        return checked(cls(**{**plain, **changed}))


def kept_places(dropped: tuple[int, ...], size: int, outputs: int) -> NDArray[np.intp]:
    """Places of all coefficients but those of some columns, of which each linear predictor has one."""
    gone = np.isin(np.arange(size), np.array(dropped, dtype=np.intp))
    return np.flatnonzero(~np.tile(gone, outputs))


def filled(inner: Floats, dropped: tuple[int, ...], outputs: int = 1) -> Floats:
    """A matrix with zeros for the columns that were left out, of which each linear predictor has one."""
    if not dropped:
        return inner
    size = len(inner) // outputs + len(dropped)
    kept = kept_places(dropped, size, outputs)
    whole = np.zeros((outputs * size, outputs * size))
    whole[np.ix_(kept, kept)] = inner
    return whole


def public_blocks(design: Design, inner: Floats, outputs: int) -> Floats:
    """A matrix (m k, m k), predictors first, in the order of the names."""
    k, places = design.size, design.places
    blocks = inner.reshape(outputs, k, outputs, k)
    named = np.empty_like(blocks)
    for a in range(outputs):
        for b in range(outputs):
            named[a, :, b, :][np.ix_(places, places)] = blocks[a, :, b, :]
    return named.reshape(outputs * k, outputs * k)


_APART = {"design", "information", "specification"}
_NUMBERS = ("deviance", "null_deviance", "pearson")
