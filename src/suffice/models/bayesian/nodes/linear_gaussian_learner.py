"""How a linear-Gaussian node is learned: least squares by configuration, or the posterior under a conjugate prior."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Codes, Floats
from suffice.domain import Domain
from suffice.errors import EstimateError, ExistenceWarning, OptionError, Remark, listing
from suffice.families.linear_gaussian_prior import LinearGaussianPrior
from suffice.families.matrices import log_determinant, solve
from suffice.families.normal_inverse_gamma import NormalInverseGamma
from suffice.families.normal_wishart import NormalWishart
from suffice.families.regression import EXACT_COLUMNS, LeastSquares, Products, least_squares
from suffice.families.regression_distribution import PseudoRows
from suffice.models.bayesian.nodes.contract import NodeLearner
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode, products_of, statistic_of
from suffice.statistics import Statistic, Summary

#: Configurations named in a warning.
NAMED = 5


@dataclass(frozen=True)
class JointPrior:
    """Priors of all linear-Gaussian nodes from one normal-Wishart distribution of the columns `names`, in its order.

    The prior of a node is that of its regression under the marginal distribution of (real parents, node). The evidence
    of a node is then the evidence of (parents, node) divided by that of the parents, and networks that stand for the
    same independences have the same evidence.
    """

    distribution: NormalWishart
    names: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        """Check that every dimension has a name."""
        if len(self.distribution.mean_) != len(self.names):
            raise OptionError(
                f"The normal-Wishart prior has {len(self.distribution.mean_)} dimensions; the network has "
                f"{len(self.names)} real columns: {listing(self.names)}."
            )

    @classmethod
    def of(cls, distribution: NormalWishart, columns: tuple[Hashable, ...]) -> JointPrior:
        """The prior of some real columns, read by the names of the distribution.

        A distribution without names is taken only where the order of its dimensions does not matter: the order in which
        a structure happens to name its nodes is no meaning, and networks that stand for the same independences would
        have different priors. A distribution of more columns than these is good too, as its marginal is a distribution
        of the same kind.
        """
        names = distribution.get_params()["names"]
        if names is None:
            joint = cls(distribution, columns)
            if not distribution.exchangeable:
                raise OptionError(
                    "The NormalWishart prior does not say which column each dimension is. Give NormalWishart(..., "
                    f"names=[...]) with the real columns {listing(columns)} in the order of its mean."
                )
            return joint
        absent = [name for name in columns if name not in names]
        if absent:
            raise OptionError(
                f"The NormalWishart prior has the names {listing(names)}; the network has also the real "
                f"columns {listing(absent)}."
            )
        return cls(distribution, tuple(names))

    def pseudo_rows(self, parents: tuple[Hashable, ...], node: Hashable) -> PseudoRows:
        """The prior of one regression; ``v ~ InverseGamma(dof / 2, T_yy.x / 2)`` with the marginal's dof."""
        distribution = self.distribution.marginal([self.names.index(name) for name in (*parents, node)])
        scatter, p = distribution.inverse_scale_, len(parents)
        rest, logs = float(scatter[p, p]), math.log(distribution.strength_)
        if p:
            rest -= float(scatter[p, :p] @ solve(scatter[:p, :p], scatter[:p, p]))
            logs += log_determinant(scatter[:p, :p])
        return PseudoRows(distribution.strength_, distribution.mean_, scatter, distribution.dof_ / 2, rest / 2, 0, logs)


@dataclass(frozen=True)
class LinearGaussianLearner(NodeLearner):
    """Learns a linear-Gaussian node from moments.

    With a `prior`, `estimate` is ``"mean"`` (posterior mean) or ``"map"`` (joint mode in weights and variance).
    `unseen` says what joint states of discrete parents without rows get where there is no prior: the regression of all
    rows together (``"uniform"``, noted as a warning), NaN (``"nan"``), or an error (``"raise"``). `pool` names columns
    whose moments serve several nodes without discrete parents, so that one pass over their products serves all.
    """

    prior: LinearGaussianPrior | NormalInverseGamma | JointPrior | None = None
    estimate: str = "mean"
    unseen: str = "uniform"
    pool: tuple[Hashable, ...] = ()

    def of_family(self) -> Self:
        """The moments of the family alone."""
        return replace(self, pool=())

    def for_em(self, *, filled: bool) -> Self:
        """From the moments of the family; joint states without rows have a regression in the steps."""
        return replace(self, pool=(), unseen="uniform" if filled else self.unseen)

    def statistics(self, domain: Domain) -> tuple[Statistic, ...]:
        """The moments of the pool or of the family, by the joint states of discrete parents."""
        return (statistic_of(domain, self.pool),)

    def learn(self, domain: Domain, summary: Summary) -> LinearGaussianNode:
        """The fitted node."""
        products, cells = products_of(domain, summary, self.pool)
        prior = self.prior_of(domain)
        solvable = products.weight + (0.0 if prior is None else prior.strength) > 0
        if not solvable.all():  # Only a node without discrete parents can be here without rows.
            return self._without_rows(domain, cells)
        if prior is None:
            return maximum(self, domain, products, cells, least_squares(products))
        return posterior(self, domain, products, cells, prior, *prior.solve(products))

    def prior_of(self, domain: Domain) -> PseudoRows | None:
        """The prior of a node as rows that were never seen."""
        *parents, node = (v.name for v in domain.variables if v.kind != "discrete")
        if isinstance(self.prior, JointPrior):
            return self.prior.pseudo_rows(tuple(parents), node)
        if isinstance(self.prior, NormalInverseGamma):
            distribution = self.prior
            centre, scatter = np.array([distribution.delta_]), np.array([[2 * distribution.beta_]])
            return PseudoRows(
                distribution.gamma_,
                centre,
                scatter,
                distribution.alpha_,
                distribution.beta_,
                0,
                math.log(distribution.gamma_),
            )
        return None if self.prior is None else self.prior.pseudo_rows(len(parents))

    def _without_rows(self, domain: Domain, cells: Codes) -> LinearGaussianNode:
        name, q = domain.names[-1], sum(v.kind != "discrete" for v in domain.variables)
        if self.unseen != "nan":
            raise EstimateError(
                f"There are no rows to learn {name!r} from. Give rows, or a prior= that holds every weight: "
                "LinearGaussianPrior(..., on='all') or NormalWishart(...)."
            )
        nothing = np.full((1, q), np.nan)
        return LinearGaussianNode(domain, cells, nothing, nothing[:, 0], nothing[0], math.nan, pool=self.pool)


# --------------------------------------------------------------------------------------------------------------------
# Maximum likelihood
# --------------------------------------------------------------------------------------------------------------------


def maximum(
    learner: LinearGaussianLearner, domain: Domain, products: Products, cells: Codes, solved: LeastSquares
) -> LinearGaussianNode:
    """The node of maximum likelihood, from least squares."""
    variance = _mean_squares(domain, cells, products, solved)
    default, notes = _pooled_default(learner, domain, products, cells)
    # A column that was left out may explain all that is left, unless nothing is.
    unsure = ~solved.sure & (variance > 0)
    edges = _edges(domain, cells, variance) if products.exact else ()
    return LinearGaussianNode(
        domain,
        cells,
        solved.weights,
        variance,
        *default,
        size=products.weight,
        spread=solved.spread,
        estimate="mle",
        pool=learner.pool,
        notes=(*_dependence(domain, cells, solved, unsure), *_perfection(domain, cells, variance, products), *notes),
        directions=edges,
        undecided=not edges and bool(unsure.any() or not variance.all()),
    )


def _mean_squares(domain: Domain, cells: Codes, products: Products, solved: LeastSquares) -> Floats:
    """Residual variance (ddof 0), exactly 0 where the fit is perfect to rounding."""
    lost = products.lost(solved.weights, solved.squares)
    if lost.any():
        raise EstimateError(
            f"The sums of products of {domain.names[-1]!r} and its parents have no digits left for its variance"
            f"{_places(domain, cells, lost)}: the parents differ too little for numbers of their size. Subtract a "
            "number near its mean from each column, or give the difference of two parents in place of one."
        )
    perfect = products.perfect(solved.weights, solved.squares)
    return np.where(perfect, 0.0, solved.squares / products.weight)


def _pooled_default(
    learner: LinearGaussianLearner, domain: Domain, products: Products, cells: Codes
) -> tuple[tuple[Floats, float], list[str]]:
    """Weights and variance of the joint states without rows, and what there is to say about them."""
    nothing = np.full(products.mean.shape[1], np.nan), math.nan
    if not _unseen(domain, cells):
        return nothing, []
    if learner.unseen == "raise":
        raise EstimateError(
            f"{_unseen_text(domain, cells)}, so their regression is undefined. Give a prior=, or unseen=."
        )
    if learner.unseen == "nan":
        return nothing, [f"{_unseen_text(domain, cells)}; their regression is undefined (NaN)."]
    pooled = products.pooled()
    if not pooled.weight.any():
        raise EstimateError(f"There are no rows to learn {domain.names[-1]!r} from. Give rows, or a prior=.")
    solved = least_squares(pooled)
    text = f"{_unseen_text(domain, cells)}; they use the regression of all rows together."
    return (solved.weights[0], float(_mean_squares(domain, cells[:1, :0], pooled, solved)[0])), [text]


# --------------------------------------------------------------------------------------------------------------------
# With a prior
# --------------------------------------------------------------------------------------------------------------------


def posterior(
    learner: LinearGaussianLearner,
    domain: Domain,
    products: Products,
    cells: Codes,
    prior: PseudoRows,
    solved: LeastSquares,
    squares: Floats,
) -> LinearGaussianNode:
    """The node of the posterior mean or mode, from least squares with the rows of the prior."""
    default, notes = _prior_default(learner, domain, products, cells, prior)
    shape = prior.shape(products.weight)
    return LinearGaussianNode(
        domain,
        cells,
        solved.weights,
        _variance(learner, domain, prior, products.weight, squares),
        *default,
        size=products.weight,
        spread=solved.spread,
        posterior=np.stack([shape, squares / 2], axis=1),
        prior=prior,
        evidence=float(prior.log_evidence(products.weight, solved, squares).sum()),
        estimate=learner.estimate,
        pool=learner.pool,
        notes=tuple(notes),
    )


def _variance(
    learner: LinearGaussianLearner, domain: Domain, prior: PseudoRows, weight: Floats, squares: Floats
) -> Floats:
    divisor = prior.divisor(weight, learner.estimate)
    if not (divisor > 0).all():
        raise EstimateError(
            f"The variance of {domain.names[-1]!r} has no posterior mean: the posterior shape alpha + N/2 is "
            f"{float(prior.shape(weight).min()):g} somewhere and must be above 1. Use estimate='map' or a larger alpha."
        )
    return squares / divisor


def _prior_default(
    learner: LinearGaussianLearner, domain: Domain, products: Products, cells: Codes, prior: PseudoRows
) -> tuple[tuple[Floats, float], list[str]]:
    """Joint states without rows have the prior's estimate; with a flat intercept, that of all rows together."""
    nothing = np.full(products.mean.shape[1], np.nan), math.nan
    if not _unseen(domain, cells):
        return nothing, []
    rows = Products.none(products.mean.shape[1])
    notes = [f"{_unseen_text(domain, cells)}; they have the estimate of the prior alone."]
    if prior.flat:
        rows = products.pooled()
        notes = [f"{_unseen_text(domain, cells)}; their intercept has no prior, so they use all rows together."]
        if not rows.weight.any():
            raise EstimateError(
                f"There are no rows to learn {domain.names[-1]!r} from, and its intercept has no prior."
            )
    solved, squares = prior.solve(rows)
    return (solved.weights[0], float(_variance(learner, domain, prior, rows.weight, squares)[0])), notes


# --------------------------------------------------------------------------------------------------------------------
# What to say
# --------------------------------------------------------------------------------------------------------------------


def _unseen(domain: Domain, cells: Codes) -> int:
    """Number of joint states of the discrete parents without rows."""
    return math.prod(v.card for v in domain.variables if v.kind == "discrete") - len(cells)


def _unseen_text(domain: Domain, cells: Codes) -> str:
    discrete = [v for v in domain.variables if v.kind == "discrete"]
    seen, first = {tuple(cell) for cell in cells.tolist()}, []
    for codes in np.ndindex(*(v.card for v in discrete)):
        if codes not in seen:
            first.append(_label(domain, codes))
        if len(first) == NAMED:
            break
    more = _unseen(domain, cells) - len(first)
    others = f" and {more} more" if more else ""
    return f"Joint states of the discrete parents of {domain.names[-1]!r} without rows: {'; '.join(first)}{others}"


def _label(domain: Domain, codes: Sequence[int]) -> str:
    """A joint state of the discrete parents in words."""
    discrete = [v for v in domain.variables if v.kind == "discrete"]
    return ", ".join(f"{v.name}={v.states[code]!r}" for v, code in zip(discrete, codes, strict=True))


def _places(domain: Domain, cells: Codes, chosen: NDArray[np.bool_]) -> str:
    """Where something holds, in words: nothing to add without discrete parents."""
    if not cells.shape[1]:
        return ""
    labels = [_label(domain, cell) for cell in cells[chosen][:NAMED].tolist()]
    more = int(chosen.sum()) - len(labels)
    return f" at {'; '.join(labels)}" + (f" and {more} more" if more else "")


def _dependence(domain: Domain, cells: Codes, solved: LeastSquares, unsure: NDArray[np.bool_]) -> list[str]:
    """Warnings that name the weights that the rows do not determine, and those of which that is `unsure` (k,)."""
    warnings = []
    for doubt in (False, True):
        wrong = ~solved.determined & (unsure == doubt)[:, None]
        if not wrong.any():
            continue
        *parents, node = (v.name for v in domain.variables if v.kind != "discrete")
        names = [name for name, odd in zip(parents, np.asarray(wrong[:, 1:].any(axis=0)), strict=True) if odd]
        also = " and the intercept" if wrong[:, 0].any() else ""
        where = _places(domain, cells, np.asarray(wrong.any(axis=1)))
        what = f"the weights of {listing(names)}{also} in the regression of {node!r}{where}"
        if doubt:
            warnings.append(
                f"The sums do not tell {what}: these columns are linearly dependent, or so nearly that their digits "
                "are lost. The solution of least norm is used, which may be short of the maximum."
            )
        else:
            warnings.append(
                f"The rows do not determine {what}: these columns are constant or linearly dependent, or the rows too "
                "few. The solution of least norm is used."
            )
    return warnings


def _perfection(domain: Domain, cells: Codes, variance: Floats, products: Products) -> list[str]:
    if variance.all():
        return []
    where = _places(domain, cells, variance == 0)
    if not products.exact:
        return [
            f"What the parents of {domain.names[-1]!r} leave of it cannot be told from rounding{where}, as its sums "
            f"are good to float64 only: its variance is set to 0. Sums of up to {EXACT_COLUMNS} real columns are exact."
        ]
    words = f"The parents of {domain.names[-1]!r} explain it without error{where}: its variance is 0, a point mass."
    return [Remark(words, ExistenceWarning)]


def _edges(domain: Domain, cells: Codes, variance: Floats) -> tuple[str, ...]:
    """Variances that shrink to 0: the likelihood grows without bound there."""
    if variance.all():
        return ()
    return (f"variance of {domain.names[-1]!r} -> 0{_places(domain, cells, variance == 0)}",)
