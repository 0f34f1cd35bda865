"""Markov networks of known structure: log-linear models of discrete variables, learned exactly."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.domain import Domain
from suffice.engines.junction_tree import TreePlan
from suffice.engines.plans import plan_once
from suffice.errors import EstimateError, MergeError, OptionError, SizeError, listing, require
from suffice.fitting.report import Certificate, MatchedStatistics
from suffice.fitting.template import Solution, TemplateEstimator
from suffice.models.markov.approximate.options import APPROXIMATE, read_batch, read_sampling
from suffice.models.markov.certificate import certify
from suffice.models.markov.contingency import observed_margin, observed_margins
from suffice.models.markov.existence import proves_existence
from suffice.models.markov.feature import Feature
from suffice.models.markov.feature_rank import untold_notes
from suffice.models.markov.feature_spread import constant_features, offsets
from suffice.models.markov.gaps import check_counts
from suffice.models.markov.latent import MarkovLatent
from suffice.models.markov.law import LawFamily, limit_masks
from suffice.models.markov.learning import ABOVE_ZERO, SOLVERS, Learned, Problem, feature_bounds, largest_sum, learn
from suffice.models.markov.log_linear import LogLinear
from suffice.models.markov.moments import known_means, matched_means
from suffice.models.markov.numbers import check_size, real_numbers
from suffice.models.markov.priors import read_penalty
from suffice.models.markov.standing import Standing, find_face, find_standing
from suffice.models.markov.statistics import joint_counts
from suffice.models.markov.structure import Term, read_terms, term_variables
from suffice.solvers.faces import MOST_CELLS, NoJointLawError
from suffice.solvers.rank import dimensions
from suffice.solvers.scaling import inner, likelihood_bound
from suffice.statistics import Summary

Floats = NDArray[np.float64]

INCONSISTENT = ("raise", "warn")
MISSING = ("em", "raise")
ACCELERATIONS = (None, "squarem", "lbfgs")


class MarkovNetwork(MarkovLatent):
    """p(x) = exp(sum_k weight_k f_k(x)) / Z over discrete variables; the structure is given, the weights are learned.

    A clique is a table: one weight for each joint state of its variables, and exp(weight) is its potential. A `Feature`
    has one weight. Maximum likelihood makes expected and observed features agree. A variable that no term names, but
    that ``states=`` declares, is uniform.

    Data are rows, a contingency table, margins by clique, or a `Summary`; `contingency` says what counts as a table.
    Hidden variables and gaps (None, NaN, NA) are learned by EM with exact expectations: the summary then holds the
    distinct rows, and `partial_fit` and `unlearn` run EM anew.

    Args:
        structure: a list of cliques (tuples of variables) and features; a networkx graph, whose edges are the cliques:
            pairwise tables, and tables of single nodes for nodes without edges; another Markov network; or a Bayesian
            network, whose families are the cliques.
        states: declared states by variable; a declared state that never occurs keeps its place.
        hidden: number of states, or list of states, of variables that are never observed; columns of their names are
            not read. `states` may name the states that `hidden` counts.
        missing: what gaps in the rows do: ``"em"`` or ``"raise"``.
        prior: on the weights, in the order of `weight_names_`: ``Normal(mean, variance)`` with numbers or arrays,
            ``MultivariateNormal(mean, covariance)`` or ``Laplace(scale)``. The log prior is added to the SUM of the
            log-likelihood over rows.
        solver: ``"auto"``, ``"closed-form"``, ``"ipf"``, ``"gis"``, ``"gis-cyclic"``, ``"lbfgs"``, ``"newton"``,
            ``"newton-cg"``, ``"cg"``, ``"ascent"``, ``"ascent-potentials"`` or ``"owlqn"`` (for a Laplace prior). All
            reach the same law. Where exact inference does not fit: ``"sml"`` (stochastic maximum likelihood),
            ``"pseudolikelihood"``, ``"cd"`` (contrastive divergence) or ``"loopy-bp"``. Under EM it makes the M-step.
        start: weights to begin with; zeros by default, and random ones for the terms of hidden variables.
        m_steps: most iterations of the solver in an M-step, 1 or more (generalised EM); None goes to its maximum: until
            its slope is a tenth of `tolerance`, or for 10,000 iterations.
        n_init: number of EM runs from random starts where variables are hidden; the best is kept. The first begins at
            `start` where it is given.
        acceleration: of EM: None, ``"squarem"``, or ``"lbfgs"``, which after some steps follows the slope that E-steps
            give: fewer steps where much is missing. The objective never falls either way.
        inconsistent: what margins do that no table has, two at odds or all together: ``"raise"``, or ``"warn"``, which
            warns with the same words and fits them as far as it goes.
        existence: whether to decide if the maximum exists also where margins are positive, by a linear programme.
        sampling: how the chains of approximate solvers and answers run, a `GibbsSampling`.
        batch_size: rows of one update of ``"sml"`` (all by default) or ``"cd"`` (as many as chains by default).
        step_size: of ``"sml"`` and ``"cd"``: the first step, or a function of the number of the update; adaptive by
            default. A step of 1 is one over the variance of each feature.
        random_state: seed of the chains, and of random starts (0 by default); the global generator is never touched.
        limit_bytes: most memory of the junction tree; half of that of the machine by default.
        max_iter: most iterations.
        tolerance: the fit stops when no mean of a feature is further than this from its expectation (with a prior: when
            no slope of the objective a row is larger), in units of the spread of the feature. Cells of tables have the
            unit 1. By default 1e-10, and 1e-7 for EM, where it is the slope of the observed log-likelihood.
        max_seconds: most seconds, including those of the certificate, about.
        progress: show a bar.
        callback: called with the state after each iteration, objective in nats a row; True stops.
        checkpoint: file from which an interrupted fit goes on.

    >>> rows = {"A": [0, 0, 1, 1, 1, 0], "B": [0, 1, 1, 1, 0, 0], "C": [0, 0, 1, 0, 1, 1]}
    >>> mrf = MarkovNetwork([("A", "B"), ("B", "C"), ("C", "A")]).fit(rows)
    >>> mrf.marginal(("A", "B")).at(A=1, B=1).__round__(6)
    0.333333
    """

    def __init__(
        self,
        structure: Any,
        *,
        states: Mapping[Any, Any] | None = None,
        hidden: Mapping[Any, Any] | None = None,
        missing: str = "em",
        prior: Any = None,
        solver: str = "auto",
        start: Any = None,
        m_steps: int | None = None,
        n_init: int = 1,
        acceleration: str | None = None,
        inconsistent: str = "raise",
        existence: bool = True,
        sampling: Any = None,
        batch_size: int | None = None,
        step_size: Any = None,
        random_state: Any = None,
        limit_bytes: int | None = None,
        max_iter: int = 10_000,
        tolerance: float | None = None,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        """See the class."""
        options = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        TemplateEstimator.__init__(self, **options)
        self._terms = read_terms(structure)
        self._names = tuple(dict.fromkeys([*term_variables(self._terms), *(states or ())]))
        read_sampling(sampling)
        read_batch(batch_size)
        solvers = (*SOLVERS, *APPROXIMATE)
        choices = {"solver": solvers, "inconsistent": INCONSISTENT, "missing": MISSING, "acceleration": ACCELERATIONS}
        for option, known in choices.items():
            if options[option] not in known:
                raise OptionError(f"{option} is {options[option]!r}; expected one of {listing(known, 20)}.")
        check_counts(options)
        if not self._names:
            raise OptionError("The network has no variables. Give cliques, features or states=.")
        self._check_hidden()

    # -- structure ---------------------------------------------------------------------------------------------------

    @property
    def cliques(self) -> tuple[tuple[Hashable, ...], ...]:
        """The cliques that have tables, in order."""
        return tuple(term for term in self._terms if not isinstance(term, Feature))

    @property
    def terms(self) -> tuple[Term, ...]:
        """Cliques and features, in order."""
        return self._terms

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features, in order."""
        return tuple(term for term in self._terms if isinstance(term, Feature))

    @property
    def edges(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Pairs of variables that some term joins."""
        scopes = [s for term in self._terms for s in (term.placements if isinstance(term, Feature) else (term,))]
        pairs = {frozenset((a, b)): (a, b) for scope in scopes for at, a in enumerate(scope) for b in scope[at + 1 :]}
        return tuple(pairs.values())

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a variable."""
        return self._known_domain()[node].states

    def to_networkx(self) -> Any:
        """The structure as a networkx Graph."""
        graph = require("networkx", extra="graphs", purpose="to_networkx").Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    def _plan(self, model: LogLinear) -> TreePlan:
        """The junction tree of the model, planned once for the same cards."""
        try:
            return plan_once(model.cards, model.scopes, self._options["limit_bytes"])
        except SizeError as error:
            raise SizeError(
                f"{error} Or learn without exact inference: solver='sml' (stochastic maximum likelihood) or "
                "'pseudolikelihood'."
            ) from None

    # -- solving -----------------------------------------------------------------------------------------------------

    def _solve(self, summary: Summary) -> Solution:
        self._began = time.monotonic()
        domain = self._whole_domain(summary)
        for variable in domain.variables:
            if variable.card == 0:
                raise OptionError(f"Column {variable.name!r} has no values and no declared states. Give states=.")
        if not summary.weight > 0:
            raise EstimateError("There are no rows to learn from: their total weight is 0.")
        model = LogLinear(domain, self._terms)
        if self._by_sampling and self._by_em(summary):
            return self._solve_held(summary, self._start)
        if self._by_sampling:
            return self._solve_sampled(summary, self._start(model), domain)
        if self._by_em(summary):
            return self._solve_by_em(summary, self._start)
        plan = self._plan(model)  # Before any table: what is too large is refused here.
        margins = self._margins(summary, model) / summary.weight
        penalty = read_penalty(self._options["prior"], model.n_weights)
        family = LawFamily(model, plan=plan)
        standing = self._stand(family, margins, summary, penalty)
        if standing.masks:
            family = LawFamily(model, standing.masks, plan=plan, limit_bytes=self._options["limit_bytes"])
        start, control = self._start(model), self._control()
        problem = Problem(family, margins, summary.weight, penalty, control, start, standing.direction)
        learned = learn(problem, self._solver(model, penalty))
        family.rest()
        self._keep(family, learned.weights, standing.limits)
        self._standing = standing = self._confirmed(standing, family, margins)
        self._check_likelihood(summary)
        if learned.handed_on and self.__dict__.get("_conflicts"):  # No law has these margins: IPF alone nears them.
            standing = self._standing
            learned = learn(replace(problem, control=replace(control, checkpoint=None)), "ipf")
            self._keep(family, learned.weights, standing.limits)
            self._standing = standing
        return self._solution(learned, family, standing, penalty)

    def _stand(self, family: LawFamily, margins: Floats, summary: Summary, penalty: Any) -> Standing:
        """Whether the maximum exists; margins that no law has are an error, or a warning where that was asked for."""
        at_odds = bool(self.__dict__.get("_conflicts"))  # Margins that disagree lie outside of every face.
        cells = MOST_CELLS if self._options["existence"] and not at_odds else 0
        model = family.model
        try:
            standing = find_standing(model, margins, summary, penalty, cells, family)
        except NoJointLawError as error:
            if self._options["inconsistent"] == "raise":
                raise
            self._conflict(str(error))
            standing = Standing.undecided(model.n_weights)
        return standing.of_no_law(self._conflicts) if penalty is None and self.__dict__.get("_conflicts") else standing

    def _confirmed(self, standing: Standing, family: LawFamily, margins: Floats) -> Standing:
        """What was too large to be decided before may be proven by the law that was found."""
        open_question = standing.exists is None and self._options["existence"] and family.model.is_tables
        if not open_question or self.__dict__.get("_conflicts"):
            return standing
        return replace(standing, exists=True) if proves_existence(family, self._weights, margins) else standing

    def _check_likelihood(self, summary: Summary) -> None:
        """A mean of log-probabilities above 0 proves that the margins are those of no law."""
        mean = self._log_score(summary) / summary.weight
        if mean <= ABOVE_ZERO or self.__dict__.get("_conflicts"):
            return
        sentence = (
            "No joint law has the observed margins: at the weights found their mean log-probability would be "
            f"{mean:.3g}, above 0. Check the margins, or take them from one table."
        )
        if self._options["inconsistent"] == "raise":
            raise EstimateError(sentence)
        self._conflict(sentence)
        self._standing = self._standing.of_no_law(self._conflicts)

    def _solver(self, model: LogLinear, penalty: Any) -> str:
        solver: str = self._options["solver"]
        if self.__dict__.get("_conflicts") and penalty is None:
            if solver not in ("auto", "ipf") or not model.is_tables:
                raise OptionError(
                    f"solver={solver!r} has no maximum to find for margins that disagree. Use solver='ipf', or a prior."
                )
            return "ipf"
        return solver

    def _solution(self, learned: Learned, family: LawFamily, standing: Standing, penalty: Any) -> Solution:
        free = [name for name in self.nodes if not any(name in scope for scope in family.model.scopes)]
        notes = (*self.__dict__.get("_conflicts", ()), *self.__dict__.get("_notes", ()), *standing.notes)
        if free:
            notes = (*notes, f"no term names {listing(free)}: uniform")
        notes = (*notes, *untold_notes(family.model, penalty))
        return Solution(
            method=learned.method,
            estimate="maximum likelihood" if penalty is None else "MAP",
            parameterisation=None if penalty is None else "in the weights",
            outcome=learned.outcome,
            plan=str(family.plan),
            warnings=notes,
            # The certificate of tables is made when it is first read; one with a limit of time belongs to the fit.
            later=family.model.is_tables and self._options["max_seconds"] is None,
        )

    def _margins(self, summary: Summary, model: LogLinear) -> Floats:
        """Counts of all scopes (n_cells,); the last ones are kept, as a fit asks for them several times."""
        last = self.__dict__.get("_last_counts")
        if last is not None and last[0] is summary and last[1] == model.scopes:
            return np.asarray(last[2])
        parts = [np.zeros(0)]
        found_margins = observed_margins(summary, model.scopes, lambda: self._plan(model))
        for scope, found in zip(model.scopes, found_margins, strict=True):
            if found is None:
                raise MergeError(
                    f"The summary does not count {listing(scope)} together; it answers {listing(summary.answers, 3)}. "
                    "Summarise the data for this model with suffice.summarize(model, data)."
                )
            parts.append(found.ravel())
        self._last_counts = (summary, model.scopes, np.concatenate(parts))
        return self._last_counts[2]

    def _start(self, model: LogLinear) -> Floats:
        given = self._options["start"]
        if given is None:
            return np.zeros(model.n_weights)
        start = real_numbers(given, "start=")
        check_size(start[np.isfinite(start)], "start=", least=0.0)
        if start.shape != (model.n_weights,) or not np.isfinite(start).all():
            raise OptionError(
                f"start has shape {start.shape}; expected {model.n_weights} finite weights, in the order of "
                "weight_names_."
            )
        # No data move the weight of a constant: it is 0 by convention, or where a prior puts it.
        return np.array(start) if self._options["prior"] is not None else np.where(constant_features(model), 0.0, start)

    # -- certificate -------------------------------------------------------------------------------------------------

    def _log_likelihood(self, summary: Summary) -> float:
        """Minus infinity for margins that no law has: nor has any law data with them."""
        if (measured := self._found_for(summary)) is not None:
            return measured.log_likelihood
        found = self._log_score(summary)
        return found if found <= ABOVE_ZERO * summary.weight else -math.inf

    def _log_score(self, summary: Summary) -> float:
        """Sum over rows of the log-probability, from the joint counts where masks need them, else from the margins."""
        if self._by_em(summary):
            return self._observed_log_likelihood(summary)
        family = self._near()
        joint = joint_counts(summary, self.nodes) if family.extra_scopes else None
        if joint is not None:
            codes, counts = joint
            return inner(family.log_cells(self._weights, codes, self._log_normaliser()), counts)
        for scope, table in family.masks:
            seen = observed_margin(summary, scope) if scope in family.extra_scopes else None
            if seen is not None and seen[table < 0.0].any():
                return -math.inf
        counts = self._margins(summary, family.model)
        logs = family.potentials(self._weights)[: family.model.n_cells]
        return inner(logs, counts) - summary.weight * self._log_normaliser()

    def _objective(self, summary: Summary, log_likelihood: float) -> float:
        if (measured := self._found_for(summary)) is not None:
            return measured.objective
        penalty = read_penalty(self._options["prior"], len(self._weights))
        return self._log_score(summary) - (0.0 if penalty is None else penalty.value(self._weights))

    def _certify(self, summary: Summary) -> Certificate:
        if (measured := self._found_for(summary)) is not None:
            return measured.certificate
        if self._by_em(summary):
            return self._em_certificate(summary)
        family = self._family()
        penalty = read_penalty(self._options["prior"], len(self._weights))
        margins = self._margins(summary, family.model) / summary.weight
        seconds = self._options["max_seconds"]
        deadline = math.inf if seconds is None else self._began + seconds
        try:
            return certify(family, self._weights, margins, summary.weight, penalty, self._standing, deadline=deadline)
        except KeyboardInterrupt:  # The fit is done and is not thrown away.
            standing = self._standing
            scale = "not measured: interrupted"
            return Certificate(math.inf, None, exists=standing.exists, directions=standing.directions, scale=scale)

    @property
    def adjusted_n_params_(self) -> int | None:
        """Parameters that the data can tell: where the maximum is not attained, those of the laws on its face.

        Equal to `n_params_` where it is attained; None where the face is too large to be found.
        """
        return self._on_face()[0]

    @property
    def adjusted_df_(self) -> int | None:
        """Degrees of freedom on the face of an extended maximum: joint states left - 1 - parameters left."""
        return self._on_face()[1]

    def _on_face(self) -> tuple[int | None, int | None]:
        if self._by_em(self.summary_):
            return None, None
        if "_face_size" not in self.__dict__:
            model = self._family().model
            margins = self._margins(self.summary_, model) / self.summary_.weight
            self._face_size = dimensions(find_face(model, margins, self.summary_))
        return self._face_size

    def with_weights(self, weights: ArrayLike) -> Self:
        """An unfitted copy with these weights given, so that it answers questions.

        The states are those of the fit; where there was none, all have to be declared.

        A weight of minus infinity rules out all joint states where its feature (or cell) is not at its least value, one
        of plus infinity all where it is not at its largest: the limits of the laws with finite weights. So `weights_`
        of a fit give its law also where they are infinite. NaN stands for weights that run to infinity only together,
        in proportions that no single weights tell, and is an error.
        """
        domain = self.__dict__.get("_domain")
        if domain is None:
            declared = self._declared()
            missing = [name for name in self.nodes if name not in declared]
            if missing:
                raise OptionError(
                    f"Given weights need the states of all variables; declare {listing(missing)} in states=."
                )
            domain = Domain(declared[name] for name in self.nodes)
        model = LogLinear(domain, self._terms)
        given = real_numbers(weights, "The list of weights")
        if given.shape != (model.n_weights,):
            raise OptionError(f"The weights have shape {given.shape}; expected {model.n_weights} numbers.")
        if np.isnan(given).any():
            names = [model.weight_names[k] for k in np.flatnonzero(np.isnan(given))]
            raise OptionError(
                f"The weights of {listing(names)} are NaN. In a fit whose maximum is not attained they run to infinity "
                "together, and no weights give the law; use the fitted network itself, or write it to a file."
            )
        limits = np.where(np.isinf(given), given, 0.0)
        network = self.clone()
        family = network._law_of(model, limit_masks(model, limits))
        network._keep(family, np.where(np.isinf(given), 0.0, given), limits)
        if not network._refusal and network.log_partition_ == -np.inf:
            raise OptionError("The infinite weights rule out every joint state. Give weights that leave one.")
        return network

    def gis_lower_bound(self, weights: ArrayLike) -> float:
        """The lower bound Q of the log-likelihood at other weights that iterative scaling maximises, in nats a row.

        It is equal to the mean log-likelihood at the weights of this network, and nowhere above it. With changes d of
        the weights, features f, negative ones less their least values, and their largest sum C it is
        ``l + sum_k (d_k observed_k - (exp(C d_k) - 1) expected_k / C)``. See `suffice.solvers.scaling`.
        """
        family = self._family()
        observed = family.model.expected(self._margins(self.summary_, family.model) / self.summary_.weight)
        lower = feature_bounds(family.model)
        total = largest_sum(family, np.arange(family.model.n_weights)) - float(lower.sum())
        anchor = (self._weights, *family.moments(self._weights))
        return likelihood_bound(weights, anchor, observed, total=max(total, 1e-300), lower=lower)

    def log_partition(self, weights: ArrayLike) -> float:
        """Log Z at other finite weights, in the order of `weight_names_`; `log_partition_` is that of the fit."""
        given = real_numbers(weights, "The list of weights")
        if given.shape != self._weights.shape or not np.isfinite(given).all():
            raise OptionError(f"The weights have shape {given.shape}; expected {len(self._weights)} finite numbers.")
        family = self._near()
        return family.margins(given)[0] + inner(given, offsets(family.model))

    def matched_statistics(self) -> MatchedStatistics | None:
        """Observed and expected means of the features, and of the cells of tables; what a prior adds to the former.

        Where the network was learned by sampling, the expected means are those of the chains that measured it, with
        their errors. None where these are gone and no junction tree fits, and where gaps or hidden variables leave
        nothing to count.
        """
        measured = self._found_for(self.summary_) if self._by_sampling else None
        known, model = known_means(self._family(), self._weights, measured), self._family().model
        try:
            # Margins of a fit by sampling are counted scope by scope: no tree need fit.
            summary = self.summary_
            by_scope = (
                self._shares(summary, model) if self._by_sampling else self._margins(summary, model) / summary.weight
            )
            observed = model.expected(by_scope)
        except MergeError:
            return None
        penalty, at = read_penalty(self._options["prior"], len(self._weights)), (self._weights, self.summary_.weight)
        return None if known is None else matched_means(self.weight_names_, observed, known, penalty, at)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Options, weights, summary and report as plain data; functions are written as their tables."""
        plain = super().to_plain()
        domain = self.__dict__.get("_domain")
        if domain is None and len(self._declared()) == len(self.nodes):
            domain = Domain(self._declared().values())
        plain["options"]["structure"] = [
            term.tabulated(domain) if isinstance(term, Feature) and domain is not None else term for term in self._terms
        ]
        if "_weights" in self.__dict__ and plain["fitted"] is None:
            plain["given"] = self._fitted_state()
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        network = super().from_plain(plain)
        if plain.get("given") is not None:
            network._restore(plain["given"])
        return network
