"""What a Markov network learns: the weights of a log-linear model, and what it answers with them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.checks import draw_count, no_seed, read_only, text
from suffice.choices import ExactEngine, Registered
from suffice.domain import Domain
from suffice.engines import registry
from suffice.engines.junction_tree import TreePlan
from suffice.engines.memory import in_words
from suffice.errors import FileFormatError, NotFittedError, OptionError, SizeError, listing
from suffice.families.base import as_numbers, take_states
from suffice.fitting.named import in_order
from suffice.models.em.rows import has_missing, read_rows
from suffice.models.markov.approximate.family import SampledFamily
from suffice.models.markov.approximate.inference import GibbsInference
from suffice.models.markov.approximate.options import GibbsSampling
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.feature_rank import parameter_count
from suffice.models.markov.feature_spread import centred, offsets
from suffice.models.markov.inference import ExactInference, NetworkInference
from suffice.models.markov.ising import couplings_of, fields_of
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.observed import counts_by_scope, joint_counts, observed_margin
from suffice.models.markov.structure import Term
from suffice.models.row_answers import RowPrediction, RowProbability, answers_of_rows
from suffice.solvers.scaling import inner
from suffice.statistics import Summary
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


#: Cells of the largest joint table that is made on request.
MOST_CELLS = 2**24


@dataclass(frozen=True, eq=False)
class MarkovFitted:
    """p(x) = exp(sum_k weight_k f_k(x)) / Z, where some joint states may be ruled out.

    `family` has the log-linear model with its variables and terms, the masks that rule out joint states, and how
    answers are computed: by a junction tree, or by chains where none fits. `finite` (n_weights,) are finite weights;
    `limits` (n_weights,) says which of them run to infinity (minus or plus infinity, or NaN for those that run there
    only together), 0 for all that stay. `sampling` and `seed` steer chains. `n_free` is how many weights a Laplace
    prior has left away from its centre. `scores` are the objectives of the runs of EM, and `n_expectations` says how
    often expected statistics were computed in all of them.
    """

    family: LogLinearFamily
    finite: Floats
    limits: Floats
    sampling: GibbsSampling = field(default_factory=GibbsSampling)
    seed: Any = 0
    n_free: int | None = None
    scores: tuple[float, ...] = ()
    n_expectations: int = 0

    title = "MarkovNetwork"

    def __post_init__(self) -> None:
        """A value: its arrays cannot be written to."""
        object.__setattr__(self, "finite", read_only(self.finite))
        object.__setattr__(self, "limits", read_only(self.limits))

    # -- parameters --------------------------------------------------------------------------------------------------

    @property
    def model(self) -> LogLinear:
        """Variables and terms."""
        return self.family.model

    @property
    def domain(self) -> Domain:
        """The variables."""
        return self.family.model.domain

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The names of the variables."""
        return tuple(self.domain.names)

    @property
    def is_sampled(self) -> bool:
        """Whether no junction tree fits, so that chains answer."""
        return isinstance(self.family, SampledFamily)

    @property
    def weights(self) -> Floats:
        """One weight for each cell of a table and each feature (n_weights,).

        Where the maximum is not attained: minus or plus infinity for weights that run there each by itself, and NaN for
        weights that run to infinity only together with others, in proportions that the certificate names.
        """
        return np.where(self.limits != 0.0, self.limits, self.finite)

    @property
    def weight_names(self) -> tuple[str, ...]:
        """One name for each weight."""
        return self.model.weight_names

    @cached_property
    def rank(self) -> int:
        """The rank of the features, constants aside: tables have more weights than that."""
        return parameter_count(self.model)

    @property
    def n_params(self) -> int:
        """Free parameters: the rank, and with a Laplace prior at most the weights that are not at its centre."""
        return self.rank if self.n_free is None else min(self.rank, self.n_free)

    @cached_property
    def near(self) -> LogLinearFamily:
        """The same family and weights, features that lie far from 0 less a constant: what log p is made from."""
        model = centred(self.model)
        return self.family if model is self.model else self.family.over(model)

    @cached_property
    def log_normaliser(self) -> float:
        """Log Z of the potentials of `near`."""
        return self.near.margins(self.finite)[0]

    @property
    def log_partition(self) -> float:
        """Log Z: the sum over all joint states of the product of all potentials."""
        return self.log_normaliser + inner(self.finite, offsets(self.near.model))

    def log_partition_of(self, weights: ArrayLike) -> float:
        """Log Z at other finite weights, in the order of `weight_names_`; `log_partition_` is that of the fit."""
        given = self.weights_like(weights)
        return self.near.margins(given)[0] + inner(given, offsets(self.near.model))

    def weights_like(self, weights: ArrayLike) -> Floats:
        """Other finite weights, in the order of `weight_names_`."""
        given = as_numbers(in_order(weights, self.weight_names, "The list of weights"), "The list of weights")
        if given.shape != self.finite.shape or not np.isfinite(given).all():
            raise OptionError(f"The weights have shape {given.shape}; expected {len(self.finite)} finite numbers.")
        return given

    @property
    def information(self) -> Floats:
        """Cov[f] under the model (n_weights, n_weights): the Fisher information of one row, computed when asked for.

        That of all rows is ``report_.weight`` times as large; it is minus the Hessian of the summed log-likelihood.
        """
        return self.near.covariance(self.finite)

    @property
    def plan(self) -> TreePlan:
        """The junction tree; prints its width, largest table and bytes."""
        return self.family.plan

    def potential(self, clique: Any) -> Table:
        """The factor on exactly these variables, exp of the sum of all terms on them, axes in the order asked."""
        model = self.model
        names = self.domain.names_of(list(clique) if isinstance(clique, set | frozenset) else clique)
        number = model.scope_number(names)
        if number is None:
            raise OptionError(f"No term is on exactly {listing(names)}; expected one of {listing(model.scopes)}.")
        logs = model.part(self.family.potentials(self.finite)[: model.n_cells], number)
        scope = model.scopes[number]
        table = Table(self.domain.select(scope), np.exp(logs))
        return table if tuple(names) == scope else table.transpose(names)

    def factors(self) -> list[Table]:
        """The tables whose product is the distribution up to a constant, the largest cell of each 1.

        One for each set of variables that terms are on; and, where the maximum is not attained, indicators of the joint
        states that its limit leaves, which may be on further sets.
        """
        logs, tables, begin = self.family.potentials(self.finite), [], 0
        for scope in (*self.model.scopes, *self.family.extra_scopes):
            domain = self.domain.select(scope)
            end = begin + math.prod(domain.shape(scope))
            part = logs[begin:end].reshape(domain.shape(scope))
            tables.append(Table(domain, np.exp(part - part.max(initial=-np.inf))))
            begin = end
        return tables

    @property
    def em_scores(self) -> tuple[float, ...]:
        """Objective of each EM run."""
        if not self.scores:
            raise NotFittedError("This MarkovNetwork was not learned by EM, so there are no scores_ of its runs.")
        return self.scores

    @property
    def em_expectations(self) -> int:
        """How often expected statistics were computed, in all EM runs together."""
        return self.n_expectations

    @property
    def fields(self) -> dict[Hashable, Any]:
        """The fields by node: u, the weight of a feature f(x) = x; of a Potts model a dict from states to h.

        Plus or minus infinity where a field ran there.
        """
        return fields_of(self)

    @property
    def couplings(self) -> dict[tuple[Hashable, ...], float]:
        """The couplings w by edge: the weights of features f(x, y) = x y, or 1{x = y} in a Potts model.

        Edges that share a weight all have it.
        """
        return couplings_of(self)

    # -- questions ---------------------------------------------------------------------------------------------------

    @cached_property
    def inference(self) -> NetworkInference:
        """What answers questions: the junction tree, loaded once, or Gibbs sampling."""
        if isinstance(self.family, SampledFamily):
            return GibbsInference(self.family, self.finite, self.sampling, self.seed)
        return ExactInference(self.near, self.finite, self.log_normaliser)

    def query(
        self,
        variables: object,
        given: Mapping[Any, Any] | None = None,
        *,
        engine: ExactEngine | Registered = "exact",
        random_state: object = None,
    ) -> Table:
        """P(variables | given), exactly, axes in the order asked.

        `given` holds states; a dict or array of likelihoods by state is soft evidence. After an approximate fit of a
        network that is too large for exact inference the answer is from Gibbs sampling: it has `standard_errors` and an
        `effective_sample_size`, and `random_state` is its seed. `engine` may name a registered engine
        (`extend.register_engine`), such as ``"enumeration"``, that is to answer instead.
        """
        names = tuple(self.domain.names_of(variables))
        if text(engine, "engine") == "exact":
            return self.inference.table(names, given, random_state)
        planner = registry.named(engine, ("exact",))
        no_seed(random_state)
        if isinstance(self.family, SampledFamily):
            raise OptionError(f"engine={engine!r} is exact, and this network is answered by samples: leave engine out.")
        return ExactInference(self.near, self.finite, self.log_normaliser, planner).table(names, given)

    def marginal(self, variables: object, *, random_state: object = None) -> Table:
        """P(variables), axes in the order asked; they need not share a clique."""
        return self.query(variables, random_state=random_state)

    def marginals(
        self, given: Mapping[Any, Any] | None = None, *, random_state: object = None
    ) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration, or from the same chains."""
        return self.inference.tables(given, random_state)

    def map_query(self, given: Mapping[Any, Any] | None = None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        return self.inference.most_probable(given)

    def log_probability(self, given: Mapping[Any, Any] | None = None) -> float:
        """Log-probability of evidence; -inf where it is impossible."""
        return self.inference.log_probability(given)

    def score_samples(self, data: object, *, columns: object = None, threads: int | None = None) -> Floats:
        """Log-probability of each row (n,); missing values and absent columns are summed out.

        Of a Dask or Spark frame a frame with the column "log_probability"; not computed yet.
        """
        scores: Floats = answers_of_rows(RowProbability(self, threads), data, self.domain, columns)
        return scores

    def predict_proba(
        self, data: object, target: Hashable, *, columns: object = None, threads: int | None = None
    ) -> Floats:
        """P(target | the other columns) of each row (n, states), in the order of `states(target)`.

        Of a Dask or Spark frame a frame with a column for each state; not computed yet.
        """
        shares: Floats = self._predicted(data, target, columns, threads, labels=False)
        return shares

    def predict(
        self, data: object, target: Hashable, *, columns: object = None, threads: int | None = None
    ) -> NDArray[Any]:
        """The most probable state of the target given the other columns, for each row (n,).

        Of a Dask or Spark frame a frame with the column "prediction"; not computed yet.
        """
        labels: NDArray[Any] = self._predicted(data, target, columns, threads, labels=True)
        return labels

    def _predicted(self, rows: object, target: Hashable, columns: object, threads: int | None, *, labels: bool) -> Any:
        known = self.domain[target].name
        others = Domain(other for other in self.domain.variables if other.name != known)
        return answers_of_rows(RowPrediction(self, threads, target, labels), rows, others, columns)

    def sample(
        self, n: int = 1, given: Mapping[Any, Any] | None = None, *, random_state: object = None
    ) -> dict[Hashable, NDArray[Any]]:
        """`n` independent rows, exactly from the distribution (or from it given evidence), as columns of states.

        After an approximate fit of a network that is too large for exact inference: one Gibbs chain for each row.
        """
        draw_count(n)
        drawn = self.inference.condition(given).sample(n, random_state=random_state).astype(np.intp)
        variables = enumerate(self.domain.variables)
        return {variable.name: take_states(variable.states, drawn[:, column]) for column, variable in variables}

    def to_joint(self) -> Table:
        """P(all variables) as one table; too many cells are an error before any work."""
        cells = math.prod(self.domain.shape(self.nodes))
        if cells > MOST_CELLS:
            raise SizeError(
                f"The joint table has {cells:,} cells ({in_words(8 * cells)}); the limit is {MOST_CELLS:,}. Ask for "
                "the marginal of fewer variables."
            )
        return Table(self.domain, np.exp(self.near.log_joint(self.finite, self.log_normaliser)))

    def log_cells(self, codes: NDArray[Any]) -> Floats:
        """Log-probability (n,) of joint states (n, variables), codes in the order of the variables."""
        return self.near.log_cells(self.finite, codes, self.log_normaliser)

    # -- statistics --------------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum of log-probabilities over the rows of a summary in the codes of this network.

        From distinct rows, whose missing values are summed out; from joint counts where masks need them; else from the
        margins of the scopes.
        """
        if has_missing(summary):
            rows = read_rows(summary, summary.domain)
            return inner(self.inference.log_likelihood(rows.columns, len(rows.weights), None), rows.weights)
        family = self.near
        joint = joint_counts(summary, self.nodes) if family.extra_scopes else None
        if joint is not None:
            return inner(self.log_cells(joint[0]), joint[1])
        for scope, table in family.masks:
            seen = observed_margin(summary, scope) if scope in family.extra_scopes else None
            if seen is not None and seen[table < 0.0].any():
                return -math.inf
        return self.log_likelihood_of(self.counts(summary), summary.weight)

    def counts(self, summary: Summary) -> Floats:
        """Counts of all scopes (n_cells,), from whatever a summary counts."""
        if self.is_sampled or self.family.extra_scopes:
            return counts_by_scope(summary, self.model)
        return counts_by_scope(summary, self.model, lambda: self.plan)

    def log_likelihood_of(self, counts: Floats, weight: float) -> float:
        """That of counts of all scopes (n_cells,) of so many rows; masks beside the scopes are left out."""
        logs = self.near.potentials(self.finite)[: self.model.n_cells]
        return inner(logs, counts) - weight * self.log_normaliser

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.markov.portrait import portrait_of

        return portrait_of(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; terms and options are those of the network."""
        refusal = self.family.refusal if isinstance(self.family, SampledFamily) else ""
        masks = [[list(scope), table] for scope, table in self.family.masks]
        plain = {"domain": self.domain, "weights": self.finite, "limits": self.limits, "masks": masks}
        runs = {"scores": list(self.scores), "expectations": self.n_expectations} if self.scores else {}
        return {**plain, "refusal": refusal, **runs}

    @classmethod
    def from_dict(
        cls,
        plain: Mapping[str, Any],
        nodes: Sequence[Hashable],
        terms: Sequence[Term],
        memory_limit: int | None,
    ) -> MarkovFitted:
        """Rebuild from plain data, checking it."""
        domain, weights, limits = plain["domain"], np.asarray(plain["weights"]), np.asarray(plain["limits"])
        if not isinstance(domain, Domain) or set(domain.names) != set(nodes):
            raise FileFormatError("The weights do not belong to the structure of the network.")
        model = LogLinear(domain, terms)
        wrong = weights.shape != (model.n_weights,) or weights.dtype != np.float64 or not np.isfinite(weights).all()
        if wrong or limits.shape != weights.shape or not _are_limits(limits):
            raise FileFormatError(f"The file holds weights of shape {weights.shape}; expected {(model.n_weights,)}.")
        masks = []
        for scope, table in plain["masks"]:
            array = np.asarray(table)
            if array.shape != domain.shape(scope) or not np.isin(array, (0.0, -np.inf)).all():
                raise FileFormatError("A mask of the network does not fit its variables.")
            masks.append((tuple(scope), array))
        refusal = str(plain.get("refusal", ""))
        family = (
            SampledFamily(model, masks, refusal=refusal)
            if refusal
            else LogLinearFamily(model, masks, memory_limit=memory_limit)
        )
        scores = tuple(float(score) for score in plain.get("scores", ()))
        return cls(family, weights, limits, scores=scores, n_expectations=int(plain.get("expectations", 0)))


def _are_limits(limits: Floats) -> bool:
    """Whether all are 0, infinite or NaN."""
    return limits.dtype == np.float64 and bool((~np.isfinite(limits) | (limits == 0.0)).all())
