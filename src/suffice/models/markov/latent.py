"""What a Markov network learns from rows that do not show everything: by EM, or by chains that are held at rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.answers import PatternTable
from suffice.domain import Domain
from suffice.errors import EstimateError, OptionError, listing
from suffice.families.laplace import Laplace
from suffice.fitting.report import Certificate, Report
from suffice.fitting.template import Solution
from suffice.models.em.reports import counted_as_determined
from suffice.models.em.rows import has_gaps, read_rows
from suffice.models.markov.approximate.fitting import Estimate
from suffice.models.markov.approximate.law import SampledFamily
from suffice.models.markov.approximate.measure import unmeasured
from suffice.models.markov.approximate.options import read_sampling
from suffice.models.markov.approximate.problem import SampledProblem
from suffice.models.markov.approximate.verdict import judged
from suffice.models.markov.feature_rank import untold_notes
from suffice.models.markov.gaps import MarkovGaps
from suffice.models.markov.law import LawFamily
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.priors import read_penalty
from suffice.models.markov.statistics import joint_counts
from suffice.solvers.penalties import GaussianPenalty, LaplacePenalty
from suffice.solvers.scaling import inner
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.fitting.control import Control, Outcome
    from suffice.models.markov.hidden.fit import HiddenFit

Floats = NDArray[np.float64]

#: The tolerance of a fit, and of EM, whose steps get small long before the weights stand still.
TOLERANCE, EM_TOLERANCE = 1e-10, 1e-7
#: Rows that all E-steps together may go through to say what they determine, where EM itself took fewer steps.
MOST_ROWS = 200_000


class MarkovLatent(MarkovGaps):
    """Mixed into the network, which gives structure, options and law."""

    #: Objective of each EM run.
    scores_: tuple[float, ...]
    #: How often expected statistics were computed, in all EM runs together.
    n_expectations_: int

    # -- learning ----------------------------------------------------------------------------------------------------

    def _control(self) -> Control:
        from suffice.fitting.control import Control

        names = ("max_iter", "max_seconds", "progress", "callback", "checkpoint")
        given = self._options["tolerance"]
        return Control(**{name: self._options[name] for name in names}, tolerance=TOLERANCE if given is None else given)

    def _em(self, summary: Summary, domain: Domain) -> HiddenFit:
        # EM loads when rows have gaps.
        from suffice.models.markov.hidden.fit import HiddenFit

        model = LogLinear(domain, self._terms)
        penalty = read_penalty(self._options["prior"], model.n_weights)
        return HiddenFit(model, self._plan(model), read_rows(summary, domain), penalty, self._options)

    def _solve_by_em(self, summary: Summary, start: Any) -> Solution:
        """Run EM and keep the law; start: a function of the model that gives weights."""
        domain = self._whole_domain(summary)
        fit = self._em(summary, domain)
        given = None if self._options["start"] is None else start(fit.model)
        control = self._control()
        if self._options["tolerance"] is None:
            control = replace(control, tolerance=EM_TOLERANCE)
        runs, title = fit.run(control, given)
        self._keep(fit.family, runs.best, fit.standing.limits)
        self._standing = fit.standing
        self.scores_, self.n_expectations_ = runs.scores, runs.evaluations
        empty = [name for name in self._shown if name not in fit.rows.columns]
        notes = (*self.__dict__.get("_notes", ()), *fit.standing.notes, *runs.notes)
        if empty:
            notes = (*notes, f"the columns {listing(empty)} hold no value at all and are treated as hidden")
        free = [name for name in self.nodes if not any(name in scope for scope in fit.model.scopes)]
        if free:
            notes = (*notes, f"no term names {listing(free)}: uniform")
        notes = (*notes, *untold_notes(fit.model, fit.penalty))
        return Solution(
            method=self._em_title(title),
            estimate="maximum likelihood" if fit.penalty is None else "MAP",
            parameterisation=None if fit.penalty is None else "in the weights",
            outcome=runs.outcome,
            plan=str(fit.family.plan),
            warnings=notes,
        )

    def _solve_held(self, summary: Summary, start: Any) -> Solution:
        """Stochastic maximum likelihood with chains that are held at the rows; start as in `_solve_by_em`."""
        from suffice.models.markov.hidden.start import crowding, random_weights
        from suffice.models.markov.hidden.stochastic import HeldRows, learn_held, measure_held, open_margins

        self._check_sampled()
        domain = self._whole_domain(summary)
        model, rows = LogLinear(domain, self._terms), read_rows(summary, domain)
        unseen = [name for name in domain.names if name not in rows.columns]
        seed, sampling = np.random.default_rng(self._options["random_state"]), read_sampling(self._options["sampling"])
        crowd = crowding(model, unseen)
        if self._options["start"] is None:  # So small that the sum of all terms on a variable is of the size of one.
            begin = random_weights(model, unseen, seed, spread=crowd**-0.5)
        else:
            begin = start(model)
        penalty = read_penalty(self._options["prior"], model.n_weights)
        problem = SampledProblem(
            model, open_margins(rows, model), summary.weight, penalty, self._control(), begin, sampling, seed,
            step_size=self._options["step_size"],
        )  # fmt: skip
        held = HeldRows.of(rows, model, sampling.chains, seed)
        fitted = learn_held(problem, held, crowd)
        family = self._law_of(model, ())
        exact = None if isinstance(family, SampledFamily) else family
        try:
            measured = measure_held(problem, held, rows, fitted.weights, exact)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            measured = unmeasured(problem, "sml")
        fitted = judged(fitted, measured)
        self._keep(family, fitted.weights, np.zeros(model.n_weights))
        self._measured = (summary, measured)
        colours = len(problem.sampler.layout.colours)
        return Solution(
            method=fitted.title,
            estimate="maximum likelihood" if penalty is None else "MAP",
            parameterisation=None if penalty is None else "in the weights",
            outcome=fitted.outcome,
            plan=f"Gibbs sampling: {len(domain):,} variables in {colours} colours, {len(model.scopes):,} factors",
            warnings=self.__dict__.get("_notes", ()),
        )

    def _check_sampled(self) -> None:
        """Refuse what chains that are held at rows do not do."""
        solver, prior = self._options["solver"], self._options["prior"]
        if solver != "sml":
            raise OptionError(f"solver={solver!r} needs whole rows; hidden variables are learned by 'sml', or exactly.")
        if self._options["batch_size"] is not None or self._options["n_init"] != 1:
            raise OptionError("batch_size and n_init do not go with solver='sml' and hidden variables: all rows count.")
        if isinstance(prior, Laplace):
            raise OptionError("solver='sml' takes a normal prior; a Laplace prior goes with EM, solver='auto'.")

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

        What the row says is summed exactly over what it does not show; log Z is estimated.
        """
        if not self._options["hidden"]:
            options: Any = {"columns": columns, "steps": steps, "random_state": random_state}
            return super().estimate_score(data, sample_weight, **options)
        from suffice.models.markov.hidden.stochastic import row_masses

        found = self.estimate_log_partition(steps=steps, random_state=random_state)
        summary = self._aligned(self._own(self._comparing()._summary_of(data, sample_weight, columns)[0]))
        if summary.weight <= 0:
            raise EstimateError("The score of no rows is undefined: the data have no weight.")
        rows, family = read_rows(summary, summary.domain), self._family()
        logs = family.potentials(self._weights)[: family.model.n_cells]
        mean = float(rows.weights @ row_masses(family.model, logs, rows)) / summary.weight
        return Estimate(mean - found.value, found.standard_error, found.effective_sample_size, found.pareto_k)

    def _em_title(self, solver: str) -> str:
        """What a report calls the method; solver: that of the M-step."""
        steps = self._options["m_steps"]
        if self._options["acceleration"] == "lbfgs":
            return "L-BFGS on the observed log-likelihood, exact expectations"
        few = "" if steps is None else f", {steps} {'iteration' if steps == 1 else 'iterations'} a step"
        fast = ", extrapolated (SQUAREM)" if self._options["acceleration"] == "squarem" else ""
        return f"{'generalised ' if steps else ''}EM, exact expectations{fast}; M-step: {solver}{few}"

    def _em_certificate(self, summary: Summary) -> Certificate:
        fit, family = self._em(summary, self._domain), self._family()
        certificate = fit.certify(family, self._weights)
        steps = 2 * fit.model.n_weights
        few = steps <= max(self.__dict__.get("n_expectations_", 0), MOST_ROWS / max(len(fit.rows.weights), 1))
        if not few or isinstance(fit.penalty, LaplacePenalty):
            return certificate
        from suffice.models.markov.hidden.determined import curvature_of

        self._observed_information = fit.information(self._weights)
        scores, slope = self.__dict__.get("scores_", ()), fit.slope(family, self._weights)
        bent = curvature_of(*self._informations(fit.weight), slope, self.weight_names_, scores)
        return replace(certificate, curvature=bent)

    def _informations(self, weight: float) -> tuple[Floats, Floats]:
        """The information of the rows, and that of complete ones, with the prior, a row."""
        penalty = read_penalty(self._options["prior"], len(self._weights))
        more = penalty.matrix() / weight if isinstance(penalty, GaussianPenalty) else 0.0
        return self._observed_information / weight + more, self._near().covariance(self._weights) + more

    @property
    def standard_errors_(self) -> Floats:
        """Standard errors of the weights (n_weights,); inf for those that the rows do not determine."""
        found, curvature = super().standard_errors_, self.report_.certificate.curvature
        if curvature is None or not curvature.flat:
            return found
        from suffice.models.markov.hidden.determined import untold

        self._information_of_rows()
        return np.where(untold(*self._informations(self.report_.weight), curvature.threshold), np.inf, found)

    def _report(self, summary: Summary, solution: Solution, passes: int) -> Report:
        found = super()._report(summary, solution, passes)
        return counted_as_determined(found) if self._by_em(summary) and not self._by_sampling else found

    def _upheld(self, report: Report, outcome: Outcome | None) -> Report:
        """Of a fit by sampling fresh chains have said whether it has converged, see `approximate.verdict`."""
        return report if self._by_sampling else super()._upheld(report, outcome)

    @property
    def n_params_(self) -> int:
        """Free parameters: the rank of the features, less the directions that rows with hidden variables leave open."""
        report = self.__dict__.get("report_")
        curvature = None if report is None else report.certificate.curvature
        return super().n_params_ - (0 if curvature is None else len(curvature.flat))

    def _observed_log_likelihood(self, summary: Summary) -> float:
        """Sum over rows of the log-probability of what they show."""
        rows = read_rows(summary, summary.domain)
        found = self._infer().log_likelihood(rows.columns, len(rows.weights), None)
        return inner(found, rows.weights)

    def _empirical_entropy(self, summary: Summary) -> float | None:
        """That of the variables that are seen, where no row has a gap."""
        if not self._by_em(summary) or not has_gaps(summary):
            return super()._empirical_entropy(summary)
        found: PatternTable = summary[next(iter(summary.answers))]
        shares = found.weights / summary.weight
        return None if (found.rows < 0).any() else -math.fsum((shares * np.log(shares)).tolist())

    # -- after the fit -----------------------------------------------------------------------------------------------

    @property
    def n_cells_(self) -> int:
        """Joint states of all variables that are not hidden."""
        return math.prod(self._domain.shape(self._shown))

    def _information_of_rows(self) -> Floats:
        """Minus the Hessian of the observed log-likelihood; what was filled in does not count as seen."""
        if not self._by_em(self.summary_):
            return super()._information_of_rows()
        if "_observed_information" not in self.__dict__:
            fit = self._em(self.summary_, self._domain)
            self._observed_information = fit.information(self._weights)
        return self._observed_information

    def _information_in(self, family: LawFamily) -> Floats:
        if not self._by_em(self.summary_):
            return super()._information_in(family)
        return self._information_of_rows() / np.outer(family.model.units, family.model.units)

    def _joint(self) -> tuple[NDArray[Any], Floats] | None:
        summary = self.summary_
        if not self._by_em(summary):
            return super()._joint()
        if not has_gaps(summary):
            return joint_counts(summary, self._shown)
        question = next(iter(summary.answers))
        found: PatternTable = summary[question]
        return None if (found.rows < 0).any() else (found.rows.astype(np.intp), found.weights)

    def _expected(self, codes: NDArray[Any], counts: Floats) -> tuple[Floats, float]:
        if not self._options["hidden"]:
            return super()._expected(codes, counts)
        total = math.fsum(counts)
        columns = dict(zip(self._shown, codes.T.astype(np.int32), strict=True))
        expected = total * np.exp(self._infer().log_likelihood(columns, len(codes), None))
        return expected, max(0.0, total - math.fsum(expected))

    def _counted(self, data: Any, sample_weight: Any, columns: Any) -> tuple[NDArray[Any], Floats]:
        if not self._options["hidden"]:
            return super()._counted(data, sample_weight, columns)
        reader = self._comparing()
        summary = self._aligned(self._own(reader._summary_of(data, sample_weight, columns)[0]))
        answer: PatternTable = summary[next(iter(summary.answers))]
        if (answer.rows < 0).any():
            raise EstimateError("The rows have gaps, so there is no saturated model to compare with.")
        return answer.rows.astype(np.intp), answer.weights

    def _fitted_state(self) -> dict[str, Any]:
        runs = (
            {"scores": list(self.scores_), "expectations": self.n_expectations_} if "scores_" in self.__dict__ else {}
        )
        return {**super()._fitted_state(), **runs}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        if "scores" in state:
            self.scores_ = tuple(float(score) for score in state["scores"])
            self.n_expectations_ = int(state["expectations"])
