"""A node that is a generalised linear model of its parents: logistic, softmax, Poisson, gamma, Gaussian and others.

P(node | parents) is the family's distribution with the mean f(intercept + sum of effects of the parents), f the inverse
of the link. Effects are linear in real parents; each state of a discrete parent but the first has an effect of its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import MOST_AXES, Domain, Variable
from suffice.errors import EstimateError, FileFormatError, OptionError, SizeError, listing
from suffice.fitting.report import Report
from suffice.models.bayesian.nodes.contract import NO_POSTERIOR, Columns, Factor, UnitFree
from suffice.models.bayesian.nodes.glm_rows import ask_rows, places_of, table_of
from suffice.models.bayesian.nodes.regressions import fresh_name
from suffice.records import checked
from suffice.statistics import Summary
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.bayesian.em.coordinates import Coordinates, Units
    from suffice.models.glm.fitted import GLMFitted


#: Cells of a table that is still written out.
MOST_CELLS = 2**24
FIELDS = ("domain", "dispersion", "unseen", "size", "estimate", "notes", "directions", "undecided")


@dataclass(frozen=True, eq=False)
class GLMNode(UnitFree):
    """A fitted or given generalised linear model as a node.

    `model` holds the options, `learned` the coefficients and all figures of the fit. `dispersion` is that of the node's
    distribution: the one of the largest likelihood unless the model knows it, whatever the standard errors use.
    `unseen` says what a state of a parent does that the rows never had: NaN with "nan", else it counts as the parent's
    first level.
    """

    domain: Domain
    model: Any
    learned: GLMFitted
    dispersion: float = 1.0
    unseen: str = "uniform"
    size: float = 0.0
    estimate: str = "given"
    notes: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    #: Whether it is not known if the maximum exists.
    undecided: bool = False
    report: Report | None = None
    #: Standard errors from the observed information, where rows had missing values.
    observed: Any = field(default=None, repr=False)

    kind: ClassVar[str] = "glm"

    def __post_init__(self) -> None:
        """Tied nodes share what was learned, each under the names of its own parents."""
        design = self.learned.design.renamed(self.domain.names[:-1])
        if design is not self.learned.design:
            object.__setattr__(self, "learned", replace(self.learned, design=design))

    # -- shape -------------------------------------------------------------------------------------------------------

    @property
    def n_params(self) -> int:
        """Free parameters: coefficients, and the dispersion and size (of a negative binomial) where estimated."""
        kept = len(self.learned.beta) - len(self.learned.dropped)
        estimated = int(self.learned.beta.shape[1]) * kept - len(self.learned.corners)
        return estimated + n_shapes(self.model)

    @property
    def method(self) -> str:
        """How the coefficients were found."""
        return "" if self.report is None else self.report.method

    @property
    def stopped(self) -> str:
        """Why the fit of the coefficients has not converged; empty where it has."""
        return "" if self.report is None or self.report.converged else self.report.stop_reason

    @property
    def is_exact(self) -> bool:
        """Whether node and parents have states, so that the node is a table."""
        return self.discrete and not self.real_parents

    @property
    def variable(self) -> Variable:
        """The node as a variable."""
        return self.domain.variables[-1]

    @property
    def discrete(self) -> bool:
        """Whether the node has states."""
        return self.variable.kind == "discrete"

    @property
    def whole(self) -> bool:
        """Whether the values are counts."""
        return self.learned.family in ("poisson", "negative_binomial")

    @property
    def real_parents(self) -> tuple[Hashable, ...]:
        """The parents that hold numbers."""
        return tuple(v.name for v in self.domain.variables[:-1] if v.kind != "discrete")

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp] | None, ...]:
        return places_of(self.domain, self.learned.design)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def glm_(self) -> Any:
        """The node as a fitted `GLM`, with everything that one offers: tests, intervals, predictions, residuals."""
        from suffice.fitting.contract import Judgement
        from suffice.fitting.driver import Fit
        from suffice.models.glm.matched import MatchedRows

        def measured() -> Any:
            if self.report is None:
                raise EstimateError(f"{self.name!r} was not learned from rows, so there is no report of its fit.")
            report = self.report
            figures = (report.log_likelihood, report.objective, report.certificate)
            return report, Judgement(*figures, kept=MatchedRows())

        return type(self.model)(**self.model._options)._adopt(Fit(self.learned, later=measured))

    @property
    def coefficients_(self) -> Any:
        """Coefficients by name, without the intercept, as `GLM.coefficients_`; infinite where they run away."""
        return self.glm_.coefficients_

    @property
    def intercept_(self) -> Any:
        """The intercept: a number, or one for each state of a softmax node."""
        return self.glm_.intercept_

    @property
    def parameters_(self) -> Any:
        """All coefficients by name, the intercept first."""
        return self.glm_.parameters_

    @property
    def dispersion_(self) -> float:
        """The dispersion of the node's distribution: that of the largest likelihood, or the one that was given."""
        return self.dispersion

    def summary(self, level: float = 0.95) -> Any:
        """The table of coefficients, as `GLM.summary`."""
        if self.report is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so there is no summary of its fit.")
        return self.glm_.summary(level)

    def coefficient_table(self, values: Floats) -> Table:
        """Values (k,) or (k, m) of the coefficients, by name and, of a softmax node, by state."""
        names = Variable.discrete(fresh_name("coefficient", {self.name}), self.learned.design.names)
        if values.ndim == 1 or self.learned.family != "multinomial":
            return Table(Domain([names]), values.reshape(-1))
        states = [state for code, state in enumerate(self.variable.states) if code != self.learned.reference]
        return Table(Domain([names, Variable.discrete(self.name, states)]), values)

    @property
    def table_(self) -> Table:
        """P(node | parents) with axes (parents, node), where all have states; too many cells are an error."""
        if not self.discrete or self.real_parents:
            raise OptionError(
                f"{self.name!r} is a {self.learned.family} node{self._whose()}, which has no table. Read "
                "node(name).coefficients_ and .intercept_."
            )
        return Table(self.domain, np.exp(self.log_table({})))

    def _whose(self) -> str:
        return f" with the real parents {listing(self.real_parents)}" if self.real_parents else ""

    def log_table(self, known: Mapping[Hashable, float]) -> Floats:
        """Log P(node | parents) of all joint states of the variables with states, at known values of the others."""
        names = [variable.name for variable in self.domain.variables if variable.kind == "discrete"]
        shape = self.domain.shape(names)
        cells = math.prod(shape)
        if cells > MOST_CELLS or len(shape) > MOST_AXES:
            raise SizeError(
                f"The table of {self.name!r} given its {len(self.parents)} parents has {cells:,} cells. Read "
                "node(name).coefficients_ instead."
            )
        codes = np.indices(shape, dtype=np.int32).reshape(len(shape), cells)
        columns: dict[Hashable, Any] = dict(zip(names, codes, strict=True))
        columns |= {name: np.full(cells, value) for name, value in known.items()}
        return self.log_prob(columns, cells).reshape(shape)

    def factors(self) -> list[Factor]:
        """The table."""
        return [(self.domain.names, self.table_.values)]

    def expectation_factors(self) -> list[Factor]:
        """The table."""
        return self.factors()

    # -- errors and the posterior ------------------------------------------------------------------------------------

    @property
    def standard_errors_(self) -> Any:
        """Of all coefficients by name, the intercept first; infinite where a coefficient is.

        They are those of `GLM`: from the information at the maximum, with the dispersion that the model asks for;
        where rows had missing values from the observed information.
        """
        if self.observed is not None:
            from suffice.fitting.named import NamedVector

            errors = self.observed.of(self.name)
            single = self.learned.family != "multinomial"
            return NamedVector.of(errors[:, 0] if single else errors, self.learned.design.names)
        if self.report is None:
            raise EstimateError(f"{self.name!r} was not learned from rows, so it has no standard errors.")
        return self.glm_.standard_errors_

    def inference(self) -> Inference:
        """What the rows say about each coefficient."""
        from suffice.models.bayesian.nodes.estimates import of_tables, prefixed
        from suffice.models.glm.results import inference_of

        if self.observed is None and self.report is not None:
            return prefixed(inference_of(self.glm_), self.name)
        return of_tables(self.name, self.coefficient_table(np.asarray(self.parameters_)), self.error_table())

    def error_table(self) -> Table:
        """The standard errors by label."""
        return self.coefficient_table(np.asarray(self.standard_errors_))

    @property
    def has_posterior(self) -> bool:
        """Whether the model has a Gaussian or conjugate prior."""
        return self.report is not None and (self.learned.posterior is not None or self.learned.precision is not None)

    @property
    def posterior_(self) -> Any:
        """The posterior of the coefficients: exact where the prior is conjugate, else Laplace's approximation."""
        if self.observed is not None:
            raise EstimateError(NO_POSTERIOR)
        if not self.has_posterior:
            raise EstimateError(
                f"{self.name!r} has no posterior: it is for nodes learned with a Gaussian or conjugate prior. Give one "
                "to the model, GLM(..., prior=Normal(variance=...))."
            )
        return self.glm_.posterior_

    def predictive_log_prob(self, columns: Columns) -> Floats:
        """Refused: the integral over the coefficients has no closed form."""
        raise EstimateError(f"{self.name!r} is a GLM node: its posterior predictive has no closed form.")

    def log_evidence(self) -> float | None:
        """None: it has no closed form."""
        return None

    # -- the objective -----------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of log P(node | parents), -inf where an impossible event occurs."""
        return float(ask_rows(self.domain, summary, _log_likelihood, self.bare()))

    def gap(self, summary: Summary) -> float:
        """Largest slope of the objective, in units of each coefficient's information, a row; of the dispersion too."""
        from suffice.models.bayesian.nodes.glm_slopes import slope_gap

        return 0.0 if self.estimate == "given" else slope_gap(self, summary)

    def steepest(self, summary: Summary, least: float = 0.0) -> tuple[float, float]:
        """Of the score of the coefficients, and of the dispersion or size where that is estimated."""
        from suffice.models.bayesian.nodes.glm_slopes import steepest

        return (0.0, 0.0) if self.estimate == "given" else steepest(self, summary)

    def loss_bound(self, summary: Summary) -> float | None:
        """What the log-likelihood can still rise by, where it is self-concordant; else None."""
        from suffice.models.bayesian.nodes.glm_slopes import loss_bound

        return None if self.estimate == "given" else loss_bound(self, summary)

    def edges(self, summary: Summary) -> tuple[str, ...]:
        """The coefficients that run to infinity, as the fit found them."""
        return self.directions

    def coordinates(self, units: Units) -> Coordinates:
        """The coefficients that the rows determine."""
        from suffice.models.bayesian.em.coordinates import CoefficientCoordinates

        return CoefficientCoordinates(self)

    def slopes(self, summary: Summary) -> Floats:
        """Slopes (k, m) of the objective in the coefficients."""
        from suffice.models.bayesian.nodes.glm_slopes import slopes_of

        return slopes_of(self, summary).slope

    def bare(self) -> GLMNode:
        """The node without the report of its fit, as it travels to rows."""
        return replace(self, report=None, observed=None)

    def without_prior(self) -> GLMNode:
        """The same coefficients without a prior."""
        return replace(self, model=type(self.model)(**{**self.model._options, "prior": None}))

    def penalties(self) -> Any:
        """What the prior takes off the log-likelihood, in the engine's layout."""
        return self.model._task().options.penalties(self.learned.design, self.learned.beta.shape[1])

    def log_prior(self) -> float:
        """Log prior density of the coefficients up to a constant; 0 without a prior, or with a conjugate one."""
        if self.model._options["prior"] is None or self.estimate == "given":
            return 0.0
        penalties, beta = self.penalties(), self.inner()
        parts = (penalties.gaussian, penalties.laplace)
        return -float(sum(part.value(beta) for part in parts if part is not None))

    def inner(self) -> Floats:
        """Coefficients (k m,) as the penalties see them: in the engine's layout, predictors first."""
        return np.ascontiguousarray(self.learned.design.internal(self.learned.beta).T).ravel()

    def parameters(self) -> Floats:
        """The coefficients (k m,); where some run to infinity, those of the limit that are finite."""
        return self.learned.beta.ravel()

    def with_parameters(self, vector: Floats) -> GLMNode:
        """The node at other coefficients (k m,)."""
        if not np.isfinite(vector).all():
            raise EstimateError(f"A coefficient of {self.name!r} would not be finite.")
        return replace(self, learned=replace(self.learned, beta=vector.reshape(self.learned.beta.shape)))

    # -- use ---------------------------------------------------------------------------------------------------------

    def _eta(self, columns: Columns, n: int) -> Floats:
        """Linear predictors (n, m) of rows of the parents; NaN where a state was never seen and unseen is "nan"."""
        table, strange = table_of(self.parents, self._places, columns, n)
        eta = self.learned.family_object.linear(self.learned, table, None)
        return np.where(strange[:, None], np.nan, eta) if self.unseen == "nan" and strange.any() else eta

    def log_prob(self, columns: Columns, n: int | None = None) -> Floats:
        """Log P(node | parents) of each row; -inf for a number that the family does not have."""
        family = self.learned.family_object
        y = np.asarray(columns[self.name], dtype=np.float64)
        eta = self._eta(columns, len(y) if n is None else n)
        if self.discrete:
            known = np.nan_to_num(eta, nan=0.0, posinf=np.inf, neginf=-np.inf)
            return self._defined(family.log_prob_of_rows(self.learned, known, y, None), eta)
        self._mean_of(eta)
        own = self.learned.row_distribution().family
        # Between the counts there is a likelihood where such numbers were learned from, and no probability elsewhere.
        allowed = own.allowed(y) if self.learned.quasi else own.drawn(y)
        inside = np.where(allowed, y, 1.0)
        logs = family.log_prob_of_rows(replace(self.learned, dispersion=self.dispersion), eta, inside, None)
        return np.where(allowed, logs, -np.inf)

    @staticmethod
    def _defined(values: Floats, eta: Floats) -> Floats:
        return np.where(np.isnan(eta).any(axis=1), np.nan, values)

    def _mean_of(self, eta: Floats) -> Floats:
        """Means (n,) of a real node; linear predictors outside the link are an error."""
        distribution = self.learned.row_distribution()
        some = eta[~np.isnan(eta[:, 0]), 0]
        with np.errstate(all="ignore"):
            mean = distribution.link.mean(some)
            if not (
                distribution.link.inside(some[np.isfinite(some)])
                and distribution.family.inside(mean[np.isfinite(some)])
            ):
                raise EstimateError(
                    f"The parents of {self.name!r} take values for which the link {self.learned.link!r} gives no mean "
                    f"of the {self.learned.family} family. Use link='log', or leave those values out."
                )
            means = np.full(len(eta), np.nan)
            means[~np.isnan(eta[:, 0])] = mean
        return means

    def mean(self, columns: Columns, n: int) -> Floats:
        """E[node | parents] (n,) of a real node."""
        return self._mean_of(self._eta(columns, n))

    def shares(self, columns: Columns, n: int) -> Floats:
        """P(state | parents) (n, card) of a node of states."""
        states = range(self.variable.card)
        return np.stack(
            [np.exp(self.log_prob({**columns, self.name: np.full(n, s, np.int32)}, n)) for s in states], axis=1
        )

    def sample(self, columns: Columns, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One code or number for each row."""
        if self.discrete:
            ends = self.shares(columns, n).cumsum(axis=1)
            self._refuse_undefined(ends)
            drawn = (rng.random((n, 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
            return np.asarray(drawn, dtype=np.int32)
        mean = self.mean(columns, n)
        self._refuse_undefined(mean)
        try:
            return self.learned.row_distribution().family.sample(mean, self.dispersion, rng)
        except ValueError:
            raise EstimateError(
                f"The mean of {self.name!r} reaches {float(mean.max()):g} for drawn values of its parents, too large "
                "to draw from. A linear effect under the log link grows without limit; scale or cut the parents."
            ) from None

    def _refuse_undefined(self, values: Floats) -> None:
        if np.isnan(values).any():
            raise EstimateError(
                f"{self.name!r} is undefined for a state of a parent that never occurred (unseen='nan'). Give the "
                "model a prior, or use unseen='uniform'."
            )

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        values = {name: getattr(self, name) for name in FIELDS}
        report = None if self.report is None else self.report.to_dict()
        return {
            "kind": self.kind,
            **values,
            "model": self.model,
            "learned": self.learned.to_dict(),
            "report": report,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> GLMNode:
        """Rebuild from plain data, checking that the coefficients belong to the family."""
        from suffice.models.glm.declaration import GLM
        from suffice.models.glm.fitted import GLMFitted

        options = {name: plain[name] for name in FIELDS}
        options |= {name: tuple(plain[name]) for name in ("notes", "directions")}
        if not isinstance(plain["domain"], Domain) or not isinstance(plain["model"], GLM):
            raise FileFormatError("A GLM node needs a domain and a model.")
        report = None if plain["report"] is None else Report.from_dict(plain["report"])
        learned = GLMFitted.from_dict(plain["learned"])
        node = checked(cls(**options, model=plain["model"], learned=learned, report=report))
        check_fits(node)
        return node


def _log_likelihood(columns: Columns, weights: Floats, node: GLMNode) -> float:
    return float(weights @ node.log_prob(columns, len(weights)))


def n_shapes(model: Any) -> int:
    """Numbers that a model estimates beside the coefficients: a dispersion, or the size of a negative binomial."""
    options = model._task().options
    free = options.family.free_dispersion and options.known_dispersion is None
    return int(free or options.free_size)


def check_fits(node: GLMNode) -> None:
    """Raise where a design or a distribution does not belong to the family of a node."""
    learned, family = node.learned, node.domain.variables[:-1]
    kinds = [hasattr(column, "variable") for column in learned.design.columns]
    sound = kinds == [parent.kind == "discrete" for parent in family]
    sound = sound and node.discrete == (learned.family in ("binomial", "multinomial"))
    width = len(node.variable.states) - 1 if learned.family == "multinomial" else 1
    sound = sound and learned.beta.shape[1] == width and (not node.discrete or node.variable.card == width + 1)
    if not sound or not node.dispersion > 0:
        raise FileFormatError(
            f"The coefficients of the GLM node {node.name!r} do not belong to its parents and states."
        )
