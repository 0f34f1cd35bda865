"""The part of a Markov network that learns and answers where exact inference does not fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.annealing import LogPartition, log_partition
from suffice.engines.plans import plan_once
from suffice.errors import EstimateError, MergeError, OptionError, SamplingWarning, SizeError, listing, warn
from suffice.fitting.template import Solution
from suffice.models.markov.answers import Inference
from suffice.models.markov.approximate.inference import GibbsInference
from suffice.models.markov.approximate.law import SampledFamily
from suffice.models.markov.approximate.measure import Measured
from suffice.models.markov.approximate.options import APPROXIMATE, read_batch, read_sampling
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.rows import (
    Rows,
    model_sampler,
    read_rows,
    rows_of_summary,
    summary_of_rows,
)
from suffice.models.markov.approximate.verdict import learn_and_measure
from suffice.models.markov.contingency import is_margins, observed_margin, read_cells
from suffice.models.markov.data import JOINT_CELLS, JOINT_VARIABLES, MarkovData
from suffice.models.markov.feature_rank import untold_notes
from suffice.models.markov.feature_spread import offsets
from suffice.models.markov.law import LawFamily, Masks
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import read_penalty
from suffice.solvers.scaling import inner
from suffice.statistics import Counts, Statistic, Summary

Floats = NDArray[np.float64]

#: After an approximate fit a junction tree of up to this many bytes is used all the same, for exact answers.
EXACT_BYTES = 64_000_000
#: Annealed chains that estimate log Z.
CHAINS = 128


@dataclass(frozen=True)
class Estimate:
    """A value with its standard error; unpacks as both.

    `effective_sample_size` and `pareto_k` are those of the annealed chains it comes from; see `LogPartition`.
    """

    value: float
    standard_error: float
    effective_sample_size: float | None = None
    pareto_k: float | None = None

    def __iter__(self) -> Iterator[float]:
        """Value and standard error."""
        return iter((self.value, self.standard_error))

    def __str__(self) -> str:
        return f"{self.value:.6g} +- {self.standard_error:.2g}"


class MarkovApproximation(MarkovData):
    """What `solver="sml"`, ``"cd"``, ``"pseudolikelihood"`` and ``"loopy-bp"`` add to a Markov network."""

    #: Why exact inference does not fit; empty where it does.
    _refusal: str = ""
    _rows: Rows | None
    _measured: tuple[Summary, Measured]

    @property
    def _by_sampling(self) -> bool:
        return self._options["solver"] in APPROXIMATE

    # -- data --------------------------------------------------------------------------------------------------------

    def _ask(self, domain: Domain) -> tuple[Statistic, ...]:
        if not self._by_sampling or self.__dict__.get("_jointly"):
            return super()._ask(domain)
        wrong = [variable.name for variable in domain.variables if variable.kind != "discrete"]
        if wrong:
            raise OptionError(f"{listing(wrong)} hold numbers; a Markov network needs states. Declare them in states=.")
        if len(self.nodes) <= JOINT_VARIABLES and math.prod(domain.shape(self.nodes)) <= JOINT_CELLS:
            return (Counts(self.nodes),)
        return tuple(Counts(scope) for scope in LogLinear(domain.select(self.nodes), self._terms).scopes)

    def _summary_of(self, data: Any, sample_weight: Any, columns: Any) -> tuple[Summary, int]:
        """Rows of many variables are read into memory as codes, and counted there."""
        plain = isinstance(data, Summary) or self.__dict__.get("_jointly") or len(self.nodes) <= JOINT_VARIABLES
        if not self._by_sampling or plain or is_margins(data, self.nodes):
            return super()._summary_of(data, sample_weight, columns)
        if not isinstance(data, np.ndarray) and read_cells(data, columns, self._declared(), self.nodes) is not None:
            return super()._summary_of(data, sample_weight, columns)
        from suffice.sources import open_source

        self._conflicts, self._notes = (), ()
        source = open_source(data, columns=columns, sample_weight=sample_weight)
        domain, rows, count = read_rows(source, self._wanted(source.columns), self.nodes)
        summary = summary_of_rows(domain, self._terms, rows, count)
        self._read = (summary, rows)
        return summary, max(source.passes, 1)

    def _learn(self, summary: Summary, passes: int) -> Self:
        """The rows are held while the fit needs them, and no longer."""
        read = self.__dict__.pop("_read", None)
        if not self._by_sampling:
            return super()._learn(summary, passes)
        self._rows = read[1] if read is not None and read[0] is summary else rows_of_summary(summary, self.nodes)
        try:
            return super()._learn(summary, passes)
        finally:
            self.__dict__.pop("_rows", None)

    # -- learning ----------------------------------------------------------------------------------------------------

    def _solve_sampled(self, summary: Summary, start: Floats | None, domain: Domain) -> Solution:
        """Learn, measure, and keep the law."""
        model, solver = LogLinear(domain, self._terms), self._options["solver"]
        penalty = read_penalty(self._options["prior"], model.n_weights)
        problem = SampledProblem(
            model,
            self._shares(summary, model),
            summary.weight,
            penalty,
            self._control(),
            np.zeros(model.n_weights) if start is None else start,
            read_sampling(self._options["sampling"]),
            np.random.default_rng(self._options["random_state"]),
            self.__dict__.get("_rows"),
            read_batch(self._options["batch_size"]),
            self._options["step_size"],
        )
        family = self._law_of(model, ())
        fitted, measured = learn_and_measure(problem, solver, None if isinstance(family, SampledFamily) else family)
        self._keep(family, fitted.weights, np.zeros(model.n_weights))
        self._measured = (summary, measured)
        colours = len(problem.sampler.layout.colours)
        plan = f"Gibbs sampling: {len(domain):,} variables in {colours} colours, {len(model.scopes):,} factors"
        kind = "maximum likelihood" if penalty is None else "MAP"
        return Solution(
            method=fitted.title,
            estimate={"sml": kind}.get(solver, f"approximate {kind}"),
            parameterisation=None if penalty is None else "in the weights",
            outcome=fitted.outcome,
            plan=plan,
            warnings=(
                *self.__dict__.get("_conflicts", ()),
                *self.__dict__.get("_notes", ()),
                *fitted.notes,
                *untold_notes(model, penalty),
            ),
        )

    def _shares(self, summary: Summary, model: LogLinear) -> Floats:
        """Observed shares of all cells of the scopes (n_cells,)."""
        parts = [np.zeros(0)]
        for scope in model.scopes:
            found = observed_margin(summary, scope)
            if found is None:
                raise MergeError(
                    f"The summary does not count {listing(scope)} together; it answers {listing(summary.answers, 3)}. "
                    "Summarise the data for this model with suffice.summarize(model, data)."
                )
            parts.append(found.ravel())
        return np.concatenate(parts) / summary.weight

    def _found_for(self, summary: Summary) -> Measured | None:
        """What an approximate fit measured on this summary, if it was one."""
        held = self.__dict__.get("_measured")
        return held[1] if held is not None and held[0] is summary else None

    def _law_of(self, model: LogLinear, masks: Masks) -> LawFamily:
        """The laws of a model: by a junction tree, or by samples where the tree is large and the solver approximate."""
        limit = self._options["limit_bytes"]
        if not self._by_sampling:
            return LawFamily(model, masks, limit_bytes=limit)
        try:
            plan = plan_once(model.cards, model.scopes, EXACT_BYTES if limit is None else min(limit, EXACT_BYTES))
            self._refusal = ""
            return LawFamily(model, masks, plan=plan, limit_bytes=limit)
        except SizeError as error:
            self._refusal = str(error).partition(" Use a structure")[0]
            return SampledFamily(model, masks, refusal=self._refusal)

    # -- the law -----------------------------------------------------------------------------------------------------

    def _family(self) -> LawFamily:
        if "_law" not in self.__dict__ and self._refusal:
            model = LogLinear(self._known_domain(), self._terms)
            self._law = SampledFamily(model, self._masks, refusal=self._refusal)
        return super()._family()

    def _infer(self) -> Inference:
        family = self._family()
        if not isinstance(family, SampledFamily):
            return super()._infer()
        if "_inference" not in self.__dict__:
            sampling = read_sampling(self._options["sampling"])
            self._inference = GibbsInference(family, self._weights, sampling, self._options["random_state"])
        return self._inference

    def _fitted_state(self) -> dict[str, Any]:
        return {**super()._fitted_state(), "refusal": self._refusal}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._refusal = str(state.get("refusal", ""))

    def estimate_log_partition(
        self, *, chains: int = CHAINS, steps: int | None = None, random_state: Any = None
    ) -> LogPartition:
        """Log Z by annealed importance sampling, for networks of any size.

        Args:
            chains: independent runs, whose spread gives the error.
            steps: laws between the uniform one and this; None takes as many as the weights need to be even.
            random_state: seed; that of the network by default.

        Returns:
            An estimate with `value`, `standard_error` and `lower_bound`; it unpacks as value and standard error.
        """
        found = self._annealed(chains, steps, random_state)
        taken = inner(self._weights, offsets(self._near().model))
        return replace(found, value=found.value + taken, lower_bound=found.lower_bound + taken)

    def _annealed(self, chains: int, steps: int | None, random_state: Any) -> LogPartition:
        """Log Z of the potentials of `_near`."""
        family = self._near()
        seed = self._options["random_state"] if random_state is None else random_state
        logs, sampler = family.potentials(self._weights)[: family.model.n_cells], model_sampler(family.model)
        found = log_partition(sampler, logs, chains=chains, steps=steps, random_state=seed)
        if found.distrust:
            warn(f"The estimate of log Z is not to be relied on: {found.distrust}. Use more steps.", SamplingWarning)
        return found

    def estimate_score(
        self,
        data: Any,
        sample_weight: Any = None,
        *,
        columns: Any = None,
        steps: int | None = None,
        random_state: Any = None,
    ) -> Estimate:
        """Mean log-likelihood of a row with its standard error, that of `estimate_log_partition`.

        The mean of the log-potentials over the rows is exact; log Z is estimated.
        """
        found = self._annealed(CHAINS, steps, random_state)
        reader = self._comparing()
        summary = self._aligned(self._own(reader._summary_of(data, sample_weight, columns)[0]))
        if summary.weight <= 0:
            raise EstimateError("The score of no rows is undefined: the data have no weight.")
        family = self._near()
        logs = family.potentials(self._weights)[: family.model.n_cells]
        mean = inner(logs, self._shares(summary, family.model))
        return Estimate(mean - found.value, found.standard_error, found.effective_sample_size, found.pareto_k)
