"""The fit of a Markov chain: sequences become counted windows, windows a distribution, and that is judged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from suffice.checks import choice
from suffice.domain import Domain, Variable, as_python
from suffice.errors import EstimateError, OptionError, listing
from suffice.fitting.contract import Found, Inputs, Judgement, Purpose
from suffice.fitting.control import Control
from suffice.fitting.report import MatchedStatistics
from suffice.fitting.summaries import SummaryData, SummaryTask
from suffice.models.markov_chain.certificate import certify, log_likelihood, objective
from suffice.models.markov_chain.distributions import BackoffDistribution
from suffice.models.markov_chain.fitted import MarkovChainFitted
from suffice.models.markov_chain.input import held_out_of, read_data
from suffice.models.markov_chain.interpolation import WeightEvidence, evidence_at
from suffice.models.markov_chain.matched import matched_counts
from suffice.models.markov_chain.smoothing import AbsoluteDiscount, Interpolation, Katz, KneserNey, Smoothing
from suffice.models.markov_chain.solve import ChainOptions, SolvedChain, log_evidence, method_of, solve, with_background
from suffice.sources.ngrams import WindowLayout, check_marks
from suffice.sources.sequences import SequenceForm
from suffice.statistics import Statistic, Summary

_BY_NAME: Mapping[str, Smoothing] = {
    "deleted": Interpolation("deleted"),
    "interpolation": Interpolation("deleted"),
    "held-out": Interpolation("held-out"),
    "absolute": AbsoluteDiscount(),
    "katz": Katz(),
    "kneser-ney": KneserNey(),
}


@dataclass(frozen=True, eq=False)
class MarkovChainTask(SummaryTask[MarkovChainFitted]):
    """The rows of a chain, by its options."""

    of_sequences = True

    @cached_property
    def smoothing(self) -> Smoothing | None:
        """The way of smoothing; None for none."""
        given = self.options["smoothing"]
        if isinstance(given, str):
            return _BY_NAME[choice(given, "smoothing", _BY_NAME)]
        if given is not None and not isinstance(given, Smoothing):
            raise OptionError(
                f"smoothing is {given!r}; expected Interpolation, AbsoluteDiscount, Katz or KneserNey, or a name."
            )
        return given

    @property
    def estimate(self) -> str:
        """How rows follow from counts: "mle", or "mean" or "map" with a prior."""
        return str(self.options["estimate"] or ("mle" if self.options["prior"] is None else "mean"))

    @property
    def declared(self) -> tuple[Hashable, ...] | None:
        """The states that were declared; None where those seen count."""
        given = self.options["states"]
        return None if given is None else Variable.discrete("states", given).states

    @cached_property
    def layout(self) -> WindowLayout:
        """The windows that are counted."""
        start, end = check_marks(self.options["bounds"])
        closed = None if self.options["unknown"] is not None else self.declared
        return WindowLayout(int(self.options["order"]), start, end, closed)

    def how(self) -> dict[str, Any]:
        """What a fitted value says about how its rows were made."""
        return {
            "smoothed": self.smoothing is not None,
            "estimate": self.estimate,
            "unseen": str(self.options["unseen"]),
            "tokens": self.options["tokens"],
        }

    # -- data --------------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: MarkovChainFitted | None, purpose: Purpose) -> SummaryData:
        """The counted windows of sequences, or those of a summary."""
        if purpose == "join" and known is not None:
            known.counted  # noqa: B018  A chain without counts has nothing to join or to leave.
        form: SequenceForm = given["form"] or SequenceForm(columns=given["columns"])
        if isinstance(given.data, Summary):
            if given["held_out"] is not None or any(option is not None for option in vars(form).values()):
                raise OptionError(
                    "A Summary holds counts already; give neither lengths, group, order, columns nor held_out with it."
                )
            return super().read(given, known, purpose)
        way = self.smoothing
        if given["held_out"] is not None and not (isinstance(way, Interpolation) and way.weight == "held-out"):
            raise OptionError(
                f"held_out= is given and smoothing is {way!r}, which does not learn from it. Leave it out, or use "
                "smoothing='held-out'."
            )
        # To be compared every state is read, so that one which is not known scores as such.
        layout = replace(self.layout, states=None) if purpose == "compare" else self.layout
        beside = {name: given[name] for name in ("sample_weight", "held_out")}
        beside |= {"memory_limit": self.options["memory_limit"], "progress": bool(self.options["progress"])}
        return read_data(given.data, form, layout, self.options["tokens"], **beside)

    def required(
        self, columns: Sequence[Hashable], known: MarkovChainFitted | None, purpose: Purpose
    ) -> Mapping[Hashable, Variable | None]:
        """Every column."""
        return dict.fromkeys(columns)

    def asked(self, domain: Domain, known: MarkovChainFitted | None, purpose: Purpose) -> tuple[Statistic, ...]:
        """The counts of windows."""
        return (self.layout.question,)

    def check(self, summary: Summary, known: MarkovChainFitted | None, purpose: Purpose) -> Summary:
        """The summary, where it answers the question of this chain."""
        summary[self.layout.question]
        return summary

    def problem(self, data: SummaryData, start: MarkovChainFitted | None) -> MarkovChainProblem:
        """The rows of these counts."""
        return MarkovChainProblem(self, data)


class MarkovChainProblem:
    """Counted windows meet a distribution of the next state."""

    def __init__(self, task: MarkovChainTask, data: SummaryData) -> None:
        """Hold both."""
        self.task, self.data = task, data

    def _solve(self, control: Control) -> SolvedChain:
        task, options = self.task, self.task.options
        chosen = (task.smoothing, options["prior"], task.estimate, task.declared, as_python(options["unknown"]))
        rest = (int(options["min_count"]), options["unseen"], bool(options["learn_prior"]), control)
        return solve(self.data.statistics, task.layout, ChainOptions(*chosen, *rest))

    def solve(self, control: Control) -> Found[MarkovChainFitted]:
        """The rows, smoothed as asked."""
        task, solved = self.task, self._solve(control)
        rest = (solved.levels, solved.prior, solved.weights, solved.background)
        fitted = MarkovChainFitted(solved.distribution, solved.words, *rest, **task.how())
        estimates = {"mle": "maximum likelihood", "mean": "posterior mean", "map": "MAP"}
        runs = len(solved.levels.levels[-1])
        return Found(
            fitted,
            solved.method,
            estimates[task.estimate] if task.smoothing is None else "smoothed frequencies",
            solved.outcome,
            (*self.data.notes, *solved.notes, *self._unseen_notes(fitted)),
            f"order {solved.distribution.order}, {solved.words.card:,} states, {runs:,} distinct runs",
        )

    def _unseen_notes(self, fitted: MarkovChainFitted) -> tuple[str, ...]:
        """What to say about histories without a count."""
        if not fitted.is_plain or not (dangling := fitted.unseen_histories):
            return ()
        if fitted.unseen == "raise":
            raise EstimateError(
                f"Histories that are never followed have no row: {listing(dangling)}. Give a prior= or smoothing=, or "
                "unseen='uniform' or 'nan'."
            )
        filled = "uniform" if fitted.unseen == "uniform" else "NaN"
        return (f"{len(dangling)} histories are never followed, their rows are {filled}: {listing(dangling, 4)}",)

    def judge(self, fitted: MarkovChainFitted) -> Judgement:
        """Likelihood, slope and bound at the rows of a fitted value, from the counts, the weights and the prior."""
        options, evidence, formula = self.task.options, self._evidence(fitted), self._formula(fitted)
        learned, prior = bool(options["learn_prior"]), fitted.prior
        likelihood = log_likelihood(fitted.distribution, fitted.counted)
        certificate, gap = certify(fitted, evidence, formula, learned_prior=learned)
        return Judgement(
            likelihood,
            objective(fitted, evidence, formula, likelihood, learned_prior=learned),
            certificate,
            gap=gap,
            matched=lambda: matched(fitted),
            log_evidence=None if prior is None or prior.each else log_evidence(fitted.counted, prior),
        )

    def _evidence(self, fitted: MarkovChainFitted) -> tuple[WeightEvidence, ...]:
        """The events that learned weights are judged by, as the weights of shorter histories leave them."""
        way, layout = self.task.smoothing, self.task.layout
        if not isinstance(way, Interpolation) or not way.learned:
            return ()
        distribution = fitted.distribution
        assert isinstance(distribution, BackoffDistribution)
        held_out = held_out_of(self.data.statistics, layout, fitted.words)
        bounded, way = layout.end is not None, with_background(way, fitted.words)
        return evidence_at(fitted.counted, way, distribution, fitted.weights, bounded=bounded, held_out=held_out)

    def _formula(self, fitted: MarkovChainFitted) -> str:
        """How the rows are made where they maximise nothing; empty where they do."""
        prior = fitted.prior
        if prior is None:
            return "" if self.task.smoothing is None else method_of(self.task.smoothing)
        return "posterior mean under a mixture" if len(prior.weights) > 1 and not prior.each else ""

    def identity(self) -> Iterable[Any]:
        """Chains take no checkpoints."""
        return ()


def matched(fitted: MarkovChainFitted) -> MatchedStatistics | None:
    """Counted steps, and n(history) p(next | history); smoothing moves them apart. None without counts."""
    if fitted.levels is None:
        return None
    prior = None if fitted.smoothed else fitted.prior
    return matched_counts(fitted.distribution, fitted.levels, fitted.words, prior, fitted.estimate)
