"""What the options of a Markov network say: its variables and terms, how it is planned, where weights begin."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.array_types import Floats
from suffice.checks import byte_count, check_size, generator
from suffice.domain import Domain, Variable, declare_all
from suffice.engines.junction_tree import TreePlan
from suffice.engines.plans import plan_once
from suffice.errors import (
    EstimateError,
    ExistenceWarning,
    OptionError,
    SizeError,
    listing,
    warn,
    without_states,
)
from suffice.families.base import as_numbers
from suffice.fitting.named import in_order
from suffice.fitting.summaries import SummaryData, SummaryFitted
from suffice.models.em.held_rows import HeldRows
from suffice.models.em.hidden import hidden_variables
from suffice.models.markov.approximate.family import SampledFamily
from suffice.models.markov.approximate.held_sample import HeldSample
from suffice.models.markov.approximate.options import APPROXIMATE, GibbsSampling, read_sampling
from suffice.models.markov.approximate.rows import CodedRows
from suffice.models.markov.family import LogLinearFamily, Masks, limit_masks
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_rank import untold_notes
from suffice.models.markov.feature_spread import constant_features
from suffice.models.markov.fitted import MarkovFitted
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.observed import joint_entropy
from suffice.models.markov.options import check_options
from suffice.models.markov.priors import read_penalty
from suffice.models.markov.structure import Term, read_terms, term_edges, term_variables
from suffice.solvers.penalties import LaplacePenalty, Penalty
from suffice.statistics import Summary

#: With an approximate solver a junction tree of up to this many bytes is used all the same, for exact answers.
EXACT_BYTES = 64_000_000
#: The tolerance of a fit, and of EM, whose steps get small long before the weights stand still.
TOLERANCE, EM_TOLERANCE = 1e-10, 1e-7


@dataclass(frozen=True, eq=False)
class MarkovData(SummaryData):
    """Statistics of rows; what makes margins those of no distribution; and what else the problem needs.

    `conflicts` are sentences on margins that disagree. `sample` are the rows themselves, for approximate solvers
    that need more than counts, and `held` those that EM needs where they stay. `entropy` is that of the observed joint
    states, where they were counted together and are no longer, and `score` the log-likelihood of rows that were
    compared as they were read.
    """

    conflicts: tuple[str, ...] = ()
    sample: CodedRows | HeldSample | None = None
    entropy: float | None = None
    held: HeldRows | None = None
    score: float | None = None

    def observed_entropy(self, names: tuple[Hashable, ...]) -> float | None:
        """Entropy of the joint states of these variables in nats; None where they were not counted together."""
        return joint_entropy(self.statistics, names) if self.entropy is None else self.entropy

    @property
    def lasting(self) -> bool:
        """Nothing is kept of rows that were elsewhere."""
        return self.held is None

    def close(self) -> None:
        """Let the rows go."""
        for rows in (self.held, self.sample):
            if rows is not None:
                rows.close()

    def log_likelihood(self, fitted: SummaryFitted) -> float:
        """That of a fitted value: a sum over the rows, where these were not compared with it as they were read."""
        return fitted.log_likelihood(self.statistics) if self.score is None else self.score


def warn_conflict(sentence: str) -> str:
    """Warn that no distribution has the margins; gives the sentence."""
    warn(f"{sentence} They are fitted as far as it goes.", ExistenceWarning)
    return sentence


@dataclass(frozen=True, eq=False)
class Specification:
    """A Markov network before it meets data: options, terms (cliques and features), and all variables in order."""

    options: Mapping[str, Any]
    terms: tuple[Term, ...]
    nodes: tuple[Hashable, ...]

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Specification:
        """What options say, checked."""
        terms = read_terms(options["structure"])
        check_options(options)
        nodes = tuple(dict.fromkeys([*term_variables(terms), *(options["states"] or ())]))
        if not nodes:
            raise OptionError("The network has no variables. Give cliques, features or states=.")
        spec = cls(options, terms, nodes)
        spec.check_hidden()
        return spec

    @property
    def cliques(self) -> tuple[tuple[Hashable, ...], ...]:
        """The cliques that have tables, in order."""
        return tuple(term for term in self.terms if not isinstance(term, Feature))

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features, in order."""
        return tuple(term for term in self.terms if isinstance(term, Feature))

    @property
    def edges(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Pairs of variables that some term joins."""
        return term_edges(self.terms)

    @property
    def by_sampling(self) -> bool:
        """Whether the solver needs no exact inference."""
        return self.options["solver"] in APPROXIMATE

    @property
    def samples_rows(self) -> bool:
        """Whether the solver needs the rows themselves, and not only counts of cliques."""
        return self.options["solver"] in ("pseudolikelihood", "cd") or self.options["batch_size"] is not None

    @cached_property
    def hidden(self) -> dict[Hashable, Variable]:
        """The hidden variables; states= may name the states that hidden= counts."""
        variables = hidden_variables(self.options["hidden"])
        for name, variable in variables.items():
            if variable.kind != "discrete":
                raise OptionError(f"hidden[{name!r}] is {variable.kind!r}; a Markov network needs states. Count them.")
            if name in self._stated:
                stated, counted = self._stated[name], isinstance(self.options["hidden"][name], int)
                if stated.card != variable.card if counted else stated.states != variable.states:
                    raise OptionError(
                        f"{name!r} has {stated.card} states in states= and {variable.card} in hidden=, or other ones. "
                        "Declare it once."
                    )
                variables[name] = stated
        return variables

    @cached_property
    def _stated(self) -> dict[Hashable, Variable]:
        return declare_all(self.options["states"] or {})

    @property
    def declared(self) -> dict[Hashable, Variable]:
        """The variables whose states are declared."""
        return {**self._stated, **self.hidden}

    @property
    def observed(self) -> tuple[Hashable, ...]:
        """The variables that data have columns of."""
        return tuple(name for name in self.nodes if name not in self.hidden)

    @property
    def sampling(self) -> GibbsSampling:
        """How chains run."""
        return read_sampling(self.options["sampling"])

    def solving_stream(self) -> np.random.Generator:
        """The random numbers of a solver's chains."""
        return generator(self.options["random_state"])

    def judging_stream(self) -> np.random.Generator:
        """Those of a judge's: the same at each call where the option is a seed, and never those of the solver."""
        stream = self.solving_stream()
        try:
            return stream.spawn(1)[0]
        except TypeError:  # A generator that was not made from a seed sequence.
            return np.random.default_rng(int(stream.integers(0, 2**62)))

    def check_hidden(self) -> None:
        """Reject `hidden=` names that are not in the model."""
        given = self.options["hidden"]
        if given is not None and not isinstance(given, Mapping):
            raise OptionError(f"hidden is {given!r}; expected a dict by variable, such as hidden={{'class': 3}}.")
        unknown = [name for name in given or () if name not in self.nodes]
        if unknown:
            raise OptionError(
                f"hidden= names {listing(unknown)}, which no term names; there are {listing(self.nodes)}."
            )
        if given and not self.observed:
            raise OptionError("All variables are hidden, so no row says anything. Leave some to be observed.")

    @property
    def memory_limit(self) -> int | None:
        """The option in bytes."""
        given = self.options["memory_limit"]
        return None if given is None else byte_count(given, "memory_limit")

    def plan(self, model: LogLinear) -> TreePlan:
        """The junction tree of a model, planned once for the same numbers of states."""
        try:
            return plan_once(model.cards, model.scopes, self.memory_limit)
        except SizeError as error:
            raise SizeError(
                f"{error} Or learn without exact inference: solver='sml' (stochastic maximum likelihood) or "
                "'pseudolikelihood'."
            ) from None

    def model(self, domain: Domain) -> LogLinear:
        """The terms on the nodes of a domain; that of the last domain is kept, as reading and learning ask for it."""
        nodes = domain.select(self.nodes)
        if not self._models or self._models[0].domain is not nodes:
            self._models[:] = [LogLinear(nodes, self.terms)]
        return self._models[0]

    @cached_property
    def _models(self) -> list[LogLinear]:
        return []

    def family(self, model: LogLinear, masks: Masks = ()) -> LogLinearFamily:
        """The distributions of a model: by a junction tree; by chains where it is large and the solver approximate."""
        limit = self.memory_limit
        if not self.by_sampling:
            return LogLinearFamily(model, masks, memory_limit=limit)
        try:
            plan = plan_once(model.cards, model.scopes, EXACT_BYTES if limit is None else min(limit, EXACT_BYTES))
            return LogLinearFamily(model, masks, plan=plan, memory_limit=limit)
        except SizeError as error:
            return SampledFamily(model, masks, refusal=str(error).partition(" Use a structure")[0])

    def start(self, model: LogLinear) -> Floats:
        """The weights to begin with (n_weights,); zeros unless given."""
        given = self.options["start"]
        if given is None:
            return np.zeros(model.n_weights)
        start = as_numbers(in_order(given, model.weight_names, "start="), "start=")
        check_size(start[np.isfinite(start)], "start=", least=0.0)
        if start.shape != (model.n_weights,) or not np.isfinite(start).all():
            raise OptionError(
                f"start has shape {start.shape}; expected {model.n_weights} finite weights, in the order of "
                "weight_names_."
            )
        # No data move the weight of a constant: it is 0 by convention, or where a prior puts it.
        return np.array(start) if self.options["prior"] is not None else np.where(constant_features(model), 0.0, start)

    def penalty(self, model: LogLinear) -> Penalty | None:
        """What the prior takes off the objective; None without a prior."""
        return read_penalty(self.options["prior"], model.n_weights)

    def fitted(
        self, family: LogLinearFamily, weights: Floats, limits: Floats | None = None, **runs: Any
    ) -> MarkovFitted:
        """A fitted value; limits: where weights run to infinity."""
        nowhere = np.zeros(len(weights)) if limits is None else limits
        return MarkovFitted(family, weights, nowhere, **self.how(family.model, weights), **runs)

    def how(self, model: LogLinear, weights: Floats) -> dict[str, Any]:
        """What steers the chains of a fitted value, and how many weights a Laplace prior leaves free."""
        penalty = self.penalty(model)
        free = int(np.count_nonzero(weights != penalty.mean)) if isinstance(penalty, LaplacePenalty) else None
        return {"sampling": self.sampling, "seed": self.options["random_state"], "n_free": free}

    def given(self, weights: object, domain: Domain | None) -> MarkovFitted:
        """A value with given weights (n_weights,), which may be infinite; domain: known states, else all declared."""
        if domain is None:
            missing = [name for name in self.nodes if not (name in self.declared and self.declared[name].states)]
            if missing:
                raise OptionError(
                    f"Given weights need the states of all variables; declare {listing(missing)} in states=."
                )
            domain = Domain(self.declared[name] for name in self.nodes)
        model = LogLinear(domain, self.terms)
        what = "The list of weights"
        array = np.array(as_numbers(in_order(weights, model.weight_names, what), what))
        if array.shape != (model.n_weights,):
            raise OptionError(f"The weights have shape {array.shape}; expected {model.n_weights} numbers.")
        if np.isnan(array).any():
            names = [model.weight_names[k] for k in np.flatnonzero(np.isnan(array))]
            raise OptionError(
                f"The weights of {listing(names)} are NaN. In a fit whose maximum is not attained they run to infinity "
                "together, and no weights give the distribution; use the fitted network itself, or write it to a file."
            )
        limits = np.where(np.isinf(array), array, 0.0)
        family = self.family(model, limit_masks(model, limits))
        fitted = self.fitted(family, np.where(np.isinf(array), 0.0, array), limits)
        if not fitted.is_sampled and fitted.log_partition == -np.inf:
            raise OptionError("The infinite weights rule out every joint state. Give weights that leave one.")
        return fitted

    def fitted_from(self, plain: Mapping[str, Any]) -> MarkovFitted:
        """A fitted value out of a file."""
        fitted = MarkovFitted.from_dict(plain, self.nodes, self.terms, self.memory_limit)
        return replace(fitted, **self.how(fitted.model, fitted.finite))

    def tabulated(self, known: MarkovFitted | None) -> list[Term]:
        """The terms for a file: functions are written as their tables, where the states are known."""
        domain = None if known is None else known.domain
        if domain is None and all(name in self.declared and self.declared[name].states for name in self.nodes):
            domain = Domain(self.declared.values())
        return [
            term.tabulated(domain) if isinstance(term, Feature) and domain is not None else term for term in self.terms
        ]

    def model_notes(self, model: LogLinear, penalty: Penalty | None) -> tuple[str, ...]:
        """What a report says about variables without terms, and about weights that no data tell."""
        free = [name for name in self.nodes if not any(name in scope for scope in model.scopes)]
        uniform = (f"no term names {listing(free)}: uniform",) if free else ()
        return (*uniform, *untold_notes(model, penalty))

    def whole_domain(self, summary: Summary) -> Domain:
        """All variables of a summary and the hidden ones, in the order of the nodes; without states they are errors."""
        domain = summary.domain.merge(Domain(self.hidden.values())).select(self.nodes)
        for variable in domain.variables:
            if variable.card == 0:
                raise without_states(variable.name, summary.rows)
        if not summary.weight > 0:
            raise EstimateError(
                "There are no rows to learn from: their total weight is 0. Give rows with a weight above 0."
            )
        return domain


@dataclass(frozen=True, eq=False)
class MarkovProblem:
    """What the options say meets data: the ground of all problems of a Markov network."""

    spec: Specification
    data: MarkovData

    @cached_property
    def model(self) -> LogLinear:
        """Variables and terms."""
        return self.spec.model(self.spec.whole_domain(self.data.statistics))

    @cached_property
    def plan(self) -> TreePlan:
        """The junction tree; what is too large is refused here, before any table."""
        return self.spec.plan(self.model)

    def weight_covariance(self, fitted: Any, judged: Any) -> Floats:
        """Refused: where rows leave something open, or chains stand for sums, only single errors are worked out."""
        raise EstimateError(
            "The weights were learned with missing values, hidden variables or by sampling: their covariance is not "
            "worked out, so that answers have no error bar. standard_errors_ has the error of each weight."
        )
