"""What a regression has learned: coefficients, their covariance and the figures of the fit, without the rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import as_python
from suffice.engines.linear_predictor import Block, curvature_task, several_task
from suffice.errors import EstimateError, FileFormatError, NotFittedError
from suffice.fitting.control import Outcome
from suffice.fitting.report import Certificate
from suffice.models.glm.design import Design, Parameters
from suffice.models.glm.families import BinomialFamily, NegativeBinomialFamily
from suffice.models.glm.figures import Fit
from suffice.models.glm.input import Rows
from suffice.models.glm.laws import RowLaw, family_of
from suffice.models.glm.links import Link
from suffice.models.glm.priors import Penalties
from suffice.models.glm.problem import deviance_of, totals
from suffice.models.glm.rows import Read, threshold_names
from suffice.models.glm.separation import sentences
from suffice.models.glm.several import SeveralFit, kept_places
from suffice.models.glm.softmax import SoftmaxLaw
from suffice.records import checked
from suffice.solvers.information import LEAST_PIVOT, Information
from suffice.solvers.irls import irls

Floats = NDArray[np.float64]


_UNKNOWN = Certificate(math.inf)
_NONE = np.zeros(0)
#: A coefficient is not told by the rows where flat directions have more than this share of it.
UNTOLD = 1e-8


@dataclass(frozen=True, eq=False)
class Learned:
    """All figures of a fit.

    `beta` (k, m) is in the order of the names; `direction` (k, m) is where coefficients run to infinity. The covariance
    of the coefficients is the inverse of `information`, in the engine's layout (predictors first where there are
    several), or `sandwich` (k, k) in the order of the names where that was asked for. Without rows to speak of the
    information has size 0. Ordered labels have `thresholds` (K - 1,), which come before the coefficients wherever all
    parameters are meant: in the covariance, in `direction` and in `iterates`.
    """

    design: Design
    family: str
    link: str
    beta: Floats
    information: Information
    dispersion: float = 1.0
    ml_dispersion: float = 1.0
    size: float | None = None
    log_likelihood: float = math.nan
    objective: float = math.nan
    deviance: float = math.nan
    null_deviance: float = math.nan
    pearson: float = math.nan
    weight: float = 0.0
    df_resid: float = 0.0
    n_params: int = 0
    classes: tuple[Hashable, ...] | None = None
    reference: int | None = None
    direction: Floats | None = None
    dropped: tuple[int, ...] = ()
    sandwich: Floats | None = None
    residual_covariance: Floats | None = None
    precision: Floats | None = None
    posterior: tuple[Floats, Floats, float, Any] | None = None
    updates: int = 0
    certificate: Certificate = _UNKNOWN
    outcome: Outcome | None = None
    iterates: tuple[Floats, ...] = ()
    method: str = ""
    warnings: tuple[str, ...] = ()
    thresholds: Floats = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def parameters(self) -> Parameters:
        """All parameters by name."""
        labels = self.classes if len(self.thresholds) and self.classes is not None else ()
        return Parameters(threshold_names(labels), self.design)

    @property
    def values(self) -> Floats:
        """All parameters (k, m), in the order of their names."""
        return np.concatenate((self.thresholds[:, None], self.beta)) if len(self.thresholds) else self.beta

    @property
    def free_dispersion(self) -> bool:
        """Whether the family has a dispersion."""
        return self.family in ("gaussian", "gamma", "inverse_gaussian")

    def row_law(self) -> RowLaw:
        """Family and link, of a single linear predictor."""
        return RowLaw(*family_of(self.family, self.link, self.size))

    def covariance(self) -> Floats:
        """Of all coefficients in the order of the names: (k, k), or (m k, m k) with the predictors first."""
        if self.sandwich is not None:
            return self.sandwich
        self._check_information()
        m = self.beta.shape[1]
        if self.family == "multivariate_gaussian":
            assert self.residual_covariance is not None
            one = self._filled(self.information.inverse())
            return np.asarray(np.kron(self.residual_covariance, one), dtype=np.float64)
        if m == 1:
            return self._filled(self.information.inverse())
        return _public_blocks(self.design, filled(self.information.inverse(), self.dropped, m), m)

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
        if m > 1 or self.sandwich is not None or self.dropped or self.family == "multivariate_gaussian":
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

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a file; the outcome of the iteration is part of the report."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _APART}
        lasting = self.information.lasting()
        information = {name: getattr(lasting, name) for name in ("body", "cross", "levels", "root")}
        classes = None if self.classes is None else list(self.classes)
        listed = {name: list(getattr(self, name)) for name in ("dropped", "iterates", "warnings")}
        posterior = None if self.posterior is None else list(self.posterior)
        numbers = {name: None if math.isnan(found[name]) else found[name] for name in _NUMBERS}
        return {
            **found,
            **listed,
            **numbers,
            "design": self.design.to_plain(),
            "information": information,
            "classes": classes,
            "posterior": posterior,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Learned:
        """Rebuild from plain data, checking shapes."""
        design = Design.from_plain(plain["design"])
        beta = np.asarray(plain["beta"], dtype=np.float64)
        if beta.ndim != 2 or len(beta) != design.size or not np.isfinite(beta).all():
            raise FileFormatError(f"The file has coefficients of shape {beta.shape} for {design.size} columns.")
        thresholds = np.asarray(plain.get("thresholds", _NONE), dtype=np.float64)
        labels = plain["classes"] if plain["family"] == "ordinal" else None
        if thresholds.shape != (0 if labels is None else len(labels) - 1,) or not np.isfinite(thresholds).all():
            raise FileFormatError(f"The file has thresholds of shape {thresholds.shape} for the labels {labels}.")
        changed = {
            "design": design,
            "beta": beta,
            "thresholds": thresholds,
            "information": Information(**plain["information"]),
            "classes": None if plain["classes"] is None else tuple(plain["classes"]),
            "posterior": None if plain["posterior"] is None else tuple(plain["posterior"]),
            **{name: tuple(plain[name]) for name in ("dropped", "iterates", "warnings")},
            **{name: math.nan if plain[name] is None else float(plain[name]) for name in _NUMBERS},
        }
        return checked(cls(**{**plain, **changed}))


def filled(inner: Floats, dropped: tuple[int, ...], outputs: int = 1) -> Floats:
    """A matrix with zeros for the columns that were left out, of which each linear predictor has one."""
    if not dropped:
        return inner
    size = len(inner) // outputs + len(dropped)
    kept = kept_places(dropped, size, outputs)
    whole = np.zeros((outputs * size, outputs * size))
    whole[np.ix_(kept, kept)] = inner
    return whole


def _public_blocks(design: Design, inner: Floats, outputs: int) -> Floats:
    """A matrix (m k, m k), predictors first, in the order of the names."""
    k, places = design.size, design.places
    blocks = inner.reshape(outputs, k, outputs, k)
    found = np.empty_like(blocks)
    for a in range(outputs):
        for b in range(outputs):
            found[a, :, b, :][np.ix_(places, places)] = blocks[a, :, b, :]
    return found.reshape(outputs * k, outputs * k)


_APART = {"certificate", "outcome", "design", "information"}
_NUMBERS = ("log_likelihood", "objective", "deviance", "null_deviance", "pearson")


# -- from a fit --------------------------------------------------------------------------------------------------------


def learned_one(read: Read, fit: Fit, link: Link, penalties: Penalties, *, covariance: str) -> Learned:
    """The figures of a fit with one linear predictor."""
    design = read.design
    size = fit.family.size if isinstance(fit.family, NegativeBinomialFamily) else None
    separated = fit.separation.exists is False
    direction = None
    certificate = fit.certificate
    if separated and fit.separation.direction is not None:
        direction = design.public(fit.separation.direction)[:, None]
        certificate = replace(certificate, directions=(*sentences(design, direction), *certificate.directions))
    free = len(fit.beta) - len(fit.dropped)
    estimated = fit.family.free_dispersion and not fit.dispersion_known
    n_params = free + int(estimated) + int(size is not None and _estimated(fit))
    sandwich = None
    if covariance != "expected" and not separated:
        sandwich = _sandwich(read, fit, link) if covariance == "robust" else _observed(read, fit, link)
    posterior = None
    if fit.posterior is not None:
        beta, information, shape, scale = fit.posterior
        posterior = (design.public(beta), design.public_matrix(information.inverse()), shape, scale)
    return Learned(
        design,
        fit.family.name,
        link.name,
        design.public(fit.beta)[:, None],
        fit.information,
        fit.dispersion,
        fit.ml_dispersion,
        size,
        fit.log_likelihood + read.constant,
        fit.objective + read.constant,
        fit.totals.deviance,
        _null_deviance(read, fit, link),
        fit.totals.pearson,
        read.weight,
        read.weight - free,
        n_params,
        read.classes,
        None,
        direction,
        fit.dropped,
        sandwich,
        None,
        None if penalties.gaussian is None else penalties.gaussian.diagonal(),
        posterior,
        0,
        certificate,
        fit.outcome,
        tuple(design.public(one) if len(one) == design.size else one for one in fit.iterates),
        fit.method,
        fit.warnings,
    )


def _estimated(fit: Fit) -> bool:
    return bool(fit.family.name == "negative_binomial" and fit.size_estimated)


def _sandwich(read: Read, fit: Fit, link: Link) -> Floats:
    """I^-1 (sum over rows of squared scores) I^-1, which holds where the variance is not that of the family."""
    law = RowLaw(fit.family, link)
    layout = read.design.layout

    def squared(eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        _, score, information = law(eta, y)
        return np.zeros_like(eta), score, score**2 + 0.0 * information

    def task(block: Block) -> Any:
        return curvature_task(layout, squared, fit.beta)(block)

    rows = read.rows
    if isinstance(rows, Rows) and rows.trials is not None and rows.block.weights is not None:
        # The score of a row of trials is the sum over its trials, so that its square has the square of their number.
        rows = Rows(replace(rows.block, weights=rows.block.weights * rows.trials))
    elif read.constant:
        raise EstimateError("Robust errors of successes and failures need rows in memory.")
    found = rows.reduce(task)
    assert found.body is not None
    middle = Information(found.body, found.cross, found.levels).dense()
    bread = fit.information.inverse() / fit.dispersion
    bread = filled(bread, fit.dropped)
    return read.design.public_matrix(bread @ middle @ bread)


def _observed(read: Read, fit: Fit, link: Link) -> Floats:
    """The inverse of the observed information: minus the second derivative, by differences of the score in eta."""
    law = RowLaw(fit.family, link)
    layout = read.design.layout
    parts = []
    for sign in (1.0, -1.0):

        def curved(eta: Floats, y: Floats, sign: float = sign) -> tuple[Floats, Floats, Floats]:
            step = 6e-6 * np.maximum(1.0, np.abs(eta))
            ahead, behind = law(eta + step, y)[1], law(eta - step, y)[1]
            own = np.maximum(sign * (behind - ahead) / (2.0 * step), 0.0)
            return np.zeros_like(eta), np.zeros_like(eta), own

        found = read.rows.reduce(curvature_task(layout, curved, fit.beta))
        assert found.body is not None
        parts.append(Information(found.body, found.cross, found.levels).dense())
    phi = fit.dispersion if fit.family.free_dispersion else 1.0
    kept = np.setdiff1d(np.arange(layout.size), np.array(fit.dropped, dtype=np.intp))
    whole = np.zeros((layout.size, layout.size))
    observed = (parts[0] - parts[1])[np.ix_(kept, kept)]
    scale = np.sqrt(np.maximum(np.diagonal(observed), 0.0))
    if not ((scale > 0.0).all() and np.linalg.eigvalsh(observed / np.outer(scale, scale))[0] > LEAST_PIVOT):
        # No maximum that is sharp: the rows say nothing, or the second derivative has the wrong sign.
        whole[kept, kept] = np.inf
    else:
        whole[np.ix_(kept, kept)] = phi * np.linalg.inv(observed)
    return read.design.public_matrix(whole)


def _null_deviance(read: Read, fit: Fit, link: Link) -> float:
    """Deviance of the model with an intercept alone (without one: with a linear predictor of 0) and the offset."""
    from suffice.engines.linear_predictor import Layout
    from suffice.fitting.control import Control
    from suffice.models.glm.problem import Problem

    law = RowLaw(fit.family, link)
    layout = Layout(read.design.constant, 0)
    rows = read.rows

    def bare(block: Block) -> Block:
        return Block(block.dense[:, :0], block.y, block.weights, block.offset)

    problem = Problem(_Bare(rows, bare), layout, law)  # type: ignore[arg-type]
    mean = float(fit.average.total) / fit.average.weight
    beta = np.zeros(layout.size)
    with np.errstate(all="ignore"):
        if read.design.constant:
            beta[0] = float(link.eta(np.array([mean]))[0])
        edge = not np.isfinite(beta).all()
        if edge:
            return 0.0
        if read.design.constant and read.has_offset and math.isfinite(problem.objective(beta)[0]):
            beta = irls(problem.evaluate, beta, Control(tolerance=1e-9)).outcome.state.parameters
        if isinstance(fit.family, BinomialFamily):  # Its row law keeps the digits of shares near 0 and 1.
            return float(totals(problem.rows, layout, law, beta).deviance)
        return deviance_of(problem.rows, layout, law, beta)


@dataclass(eq=False)
class _Bare:
    """Rows without their explanatory columns."""

    rows_: Any
    bare: Any

    @property
    def rows(self) -> int:
        return int(self.rows_.rows)

    @property
    def in_memory(self) -> bool:
        return False

    def reduce(self, task: Any) -> Any:
        return self.rows_.reduce(lambda block: task(self.bare(block)))


def _label_sandwich(read: Read, fit: SeveralFit) -> Floats:
    """The sandwich of a softmax fit: the score of a row is its residual of each class times the row."""
    classes = fit.beta.shape[1] + 1
    law = SoftmaxLaw(classes)

    def squared(eta: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
        value, score, _ = law(eta, y)
        return np.zeros_like(value), score, score[:, :, None] * score[:, None, :]

    middle = read.rows.reduce(several_task(read.design.layout, squared, fit.beta)).body
    assert middle is not None
    bread = filled(fit.information.inverse(), fit.dropped, classes - 1)
    return _public_blocks(read.design, bread @ middle @ bread, classes - 1)


def learned_labels(
    read: Read, fit: SeveralFit, order: list[int], penalties: Penalties, *, covariance: str = "expected"
) -> Learned:
    """The figures of a softmax fit; a column of `beta` for each class but the reference."""
    assert read.classes is not None
    design = read.design
    m = fit.beta.shape[1]
    direction, certificate = None, fit.certificate
    if fit.separation.exists is False and fit.separation.direction is not None:
        direction = design.public(fit.separation.direction.reshape(m, -1).T)
        labels = [as_python(read.classes[at]) for at in order[:-1]]
        certificate = replace(certificate, directions=sentences(design, direction, labels))
    free = len(fit.kept())
    return Learned(
        design,
        "multinomial",
        "logit",
        design.public(fit.beta),
        fit.information,
        log_likelihood=fit.log_likelihood,
        objective=fit.objective,
        deviance=-2.0 * fit.log_likelihood,
        null_deviance=-2.0 * fit.null,
        weight=read.weight,
        df_resid=read.weight * m - free,
        n_params=free,
        classes=read.classes,
        reference=order[-1],
        direction=direction,
        dropped=fit.dropped,
        warnings=fit.warnings,
        sandwich=_label_sandwich(read, fit) if covariance == "robust" and direction is None else None,
        precision=None if penalties.gaussian is None else penalties.gaussian.diagonal(),
        certificate=certificate,
        outcome=fit.outcome,
        iterates=tuple(one.reshape(m, -1).T for one in fit.iterates),
        method=fit.method,
    )


def learned_vectors(read: Read, fit: SeveralFit) -> Learned:
    """The figures of a regression of vectors."""
    m = fit.beta.shape[1]
    assert fit.covariance is not None
    free, own, posterior = len(fit.kept()), fit.coefficient_covariance, None
    if fit.posterior is not None:
        beta, spread, dof, scale = fit.posterior
        posterior = (read.design.public(beta), read.design.public_matrix(spread), dof, scale)
    return Learned(
        read.design,
        "multivariate_gaussian",
        "identity",
        read.design.public(fit.beta),
        fit.information,
        log_likelihood=fit.log_likelihood,
        objective=fit.objective,
        deviance=float(np.trace(fit.covariance)) * read.weight,
        null_deviance=math.nan,
        weight=read.weight,
        df_resid=read.weight * m - free,
        n_params=free + m * (m + 1) // 2,
        dropped=fit.dropped,
        warnings=fit.warnings,
        sandwich=None if own is None else _public_blocks(read.design, own, m),
        residual_covariance=fit.covariance,
        precision=fit.precision,
        posterior=posterior,
        certificate=fit.certificate,
        outcome=fit.outcome,
        method=fit.method,
    )
