"""Conditional random fields on any graph: labels of nodes, given what is known about nodes, edges and cliques."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.errors import DataError, OptionError
from suffice.fitting.control import fingerprint
from suffice.fitting.estimator import Estimator
from suffice.fitting.report import Report
from suffice.models.chain_crf.existence import NO_MAXIMUM, UNDECIDED, Standing, settled
from suffice.models.chain_crf.labels import check_labels, counted, read_labels, sequence_weights
from suffice.models.chain_crf.priors import Penalties, read_prior
from suffice.models.chain_crf.stochastic import Plan
from suffice.models.graph_crf.ascent import ASCENT, ascend
from suffice.models.graph_crf.certificate import certify
from suffice.models.graph_crf.existence import graph_standing
from suffice.models.graph_crf.graphs import EDGES, Graphs, listed_examples, read_graphs
from suffice.models.graph_crf.objective import WORDS, GraphObjective
from suffice.models.graph_crf.options import check_options
from suffice.models.graph_crf.rank import graph_rank
from suffice.models.graph_crf.reading import EXAMPLES, Reading, Trained, flat_labels
from suffice.models.graph_crf.stochastic import GraphStochastic
from suffice.models.graph_crf.structure import Structure, make_structure
from suffice.models.label_learning import STOCHASTIC, Climb, Fit, chosen_solver, learn, measured
from suffice.models.label_rank import FeatureRank
from suffice.options import own_options
from suffice.statistics import Summary

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Read:
    """Labelled examples that were read: graphs, codes (nodes,) and weights (n,)."""

    graphs: Graphs
    codes: Ints
    weights: Floats
    structure: Structure


class GraphCRF(Reading, Estimator):  # type: ignore[misc]
    """A conditional random field on graphs: ``p(y | x) ~ exp(sum over cliques c of w . phi(x_c, y_c))``.

    Examples are `GraphExample`: features of nodes, edges with features, and cliques of further templates. All cliques
    of a template share its weights; every example may have a graph of its own. The objective is the SUM of the
    log-likelihood over examples, plus the log prior.

    Args:
        prior: on all weights: ``Normal(mean, variance)``, with numbers or arrays in the order of `weight_names_`,
            ``MultivariateNormal(mean, covariance)``, ``Laplace(scale)``, or a Normal and a Laplace in a tuple. None is
            maximum likelihood.
        edge_weights: how the weights of an edge depend on its two labels: "full" (one for each ordered pair),
            "symmetric" (the labels may change places), "equal" (one weight a feature, which acts only when the two
            labels agree), or a function of two labels that gives a number, or several.
        templates: further kinds of clique, of one node or more: a dict from the name, under which examples give their
            cliques, to "full", "symmetric", "equal" (all labels agree), or a function of the labels.
        labels: the labels there are, in order; those seen, sorted, unless given.
        solver: "auto" (L-BFGS, with a Laplace prior OWL-QN), "lbfgs", "owlqn", "newton" (few weights), "sgd", "adam"
            or "perceptron".
        inference: "auto" is exact where a junction tree has at most `max_cells` cells, and elsewhere fits by the
            pseudo-likelihood and predicts by loopy belief propagation; "exact" raises instead; "pseudo-likelihood" and
            "loopy" use these for every graph; "gibbs" fits wide graphs by stochastic ascent with Gibbs sampling, and
            samples their marginals. With solver="auto" and no `step_size` its steps are scaled by the examples, adapt,
            and end when the slope is small beside what the examples can tell; `max_iter` counts updates.
        max_cells: most cells of the tables of one junction tree.
        max_iter: most iterations; of a stochastic solver: passes over the examples.
        tolerance: on the norm of the gradient divided by that of the weights (at least 1).
        step_size: of a stochastic solver: a number, a list, or a function of the number of the update. None is 0.1, and
            adaptive for solver="auto" with inference="gibbs".
        decay: exponent with which a constant `step_size` falls, from 0 to 1.
        batch_size: examples of one update.
        average: whether a stochastic solver returns the mean of its updates.
        shuffle: whether the order of the examples is drawn anew for each pass.
        expectations: of a stochastic gradient: "exact" (by `inference`), "gibbs", "sampled" (independent draws), or
            "auto": Gibbs sampling where a graph is too wide, else exact.
        n_samples: draws of the labels of an example for sampled expectations.
        n_sweeps: sweeps of Gibbs sampling in each update; chains begin at the labels given (adaptive ascent: at random
            labels) and go on from update to update.
        patience: iterations without a rise on a validation set after which the fit ends.
        warm_start: start from the weights of the last fit.
        random_state: seed of all that is drawn.
        threads: None is one for each core.
        max_seconds: most seconds.
        progress: show a bar.
        callback: called with the state after each iteration; True stops the fit.
        checkpoint: a file from which a fit that was stopped goes on.

    >>> from suffice import GraphExample, Normal
    >>> X = [GraphExample.grid([[1.0, 0.9], [-1.0, 0.2]]), GraphExample.grid([[-0.8, -1.0], [0.1, -0.9]])]
    >>> model = GraphCRF(prior=Normal(variance=10.0), edge_weights="equal").fit(X, [[1, 1, 0, 1], [0, 0, 0, 0]])
    >>> model.predict(X)
    [[1, 1, 0, 1], [0, 0, 0, 0]]
    """

    def __init__(
        self,
        prior: Any = None,
        *,
        edge_weights: Any = "full",
        templates: Mapping[str, Any] | None = None,
        labels: Any = None,
        solver: str = "auto",
        inference: str = "auto",
        max_cells: int = 2**19,
        max_iter: int = 1000,
        tolerance: float = 1e-5,
        step_size: Any = None,
        decay: float = 0.0,
        batch_size: int = 1,
        average: bool = False,
        shuffle: bool = True,
        expectations: str = "auto",
        n_samples: int = 10,
        n_sweeps: int = 10,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        """See the class."""
        options = own_options(locals())
        super().__init__(**options)
        check_options(options)
        self._engine()
        self._plan("exact", "sgd")

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, validation: tuple[Any, Any] | None = None
    ) -> Self:
        """Learn the weights.

        Args:
            X: examples: `GraphExample`, or tuples (nodes, edges, edge features).
            y: the labels of the nodes of each example; those of a picture may be an array (height, width).
            sample_weight: how many examples each example stands for (n,); those of weight 0 are left out.
            validation: examples and labels (X, y); the fit ends when their log-likelihood no longer rises.

        Returns:
            self
        """
        read = self._read(X, y, sample_weight, None)
        start = self._start(read.structure)
        objective = self._objective_of(read)
        solver = self._solver(objective)
        stochastic = self._stochastic(read, objective, solver) if solver in (*STOCHASTIC, ASCENT) else None
        control, patience = self._control(), self._options["patience"]
        watch = None if validation is None else self._watch(validation, read.structure)
        if control.checkpoint is not None and watch is not None:
            raise OptionError(
                "checkpoint is for fits whose next step follows from the weights, not with a validation set."
            )
        problem = "" if control.checkpoint is None else self._problem(read, solver)
        climb: Climb | None = None
        if stochastic is not None and solver == ASCENT:
            climb = partial(ascend, objective, stochastic, problem=problem)
        elif stochastic is not None:
            climb = partial(stochastic.run, gap=partial(measured, objective), problem=problem)
        found = learn(
            objective, start, control, solver=solver, climb=climb, watch=watch, patience=patience, problem=problem
        )
        rank = graph_rank(read.structure, read.graphs)
        standing = None if solver == "perceptron" else UNDECIDED
        if self._options["prior"] is None and standing is not None:
            standing = graph_standing(objective, read.graphs, read.codes, found.weights, rank)
        return self._accept(read, objective, found, rank, standing=standing)

    def _watch(self, validation: Any, structure: Structure) -> Any:
        """The mean log-likelihood of a validation set, or what takes its place, as a function of the weights."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise OptionError("validation is a pair (X, y) of examples and their labels.")
        try:
            graphs = read_graphs(
                validation[0], [template.name for template in structure.templates[2:]], structure.widths
            )
            codes, _ = read_labels(flat_labels(validation[1], graphs), graphs.offsets, structure.labels, words=EXAMPLES)
        except DataError as error:
            raise type(error)(f"In the validation set: {error}") from None
        ones = np.ones(len(graphs))
        objective = GraphObjective(structure, graphs, codes, ones, Penalties(), self._engine())
        return lambda weights: objective.log_likelihood(weights) / len(graphs)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Go through these examples once, in their order, with steps of `step_size`: stochastic ascent.

        The prior counts with one over the number of examples of this call for each. The first call begins at zero and
        settles the labels, unless `labels` says them. With solver="adam" or "perceptron" the updates are those, else
        plain ascent; moments and means go on from call to call. An example of weight w moves them w times as far.
        """
        earlier: Trained | None = self.__dict__.get("_trained")
        read = self._read(X, y, sample_weight, earlier)
        start = np.zeros(read.structure.length) if earlier is None else earlier.weights
        objective = self._objective_of(read)
        solver = self._options["solver"] if self._options["solver"] in STOCHASTIC else "sgd"
        run = self._stochastic(read, objective, solver, online=True)
        done, walk = (0, None) if earlier is None else (earlier.updates, earlier.walk)
        after = run.epoch(run.memory_at(start, done, walk))
        found = Fit.passed(after["mean"] if run.averaged else after["raw"], objective, solver)
        rank, updates = graph_rank(read.structure, None), int(after["updates"])
        return self._accept(read, objective, found, rank, updates=updates, walk=run.going_on(after))

    def unlearn(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Not offered: the examples of an iterative fit cannot be taken out again."""
        raise OptionError("A GraphCRF has no finite statistics to take examples out of; fit it again without them.")

    def _read(self, X: Any, y: Any, sample_weight: Any, earlier: Trained | None) -> _Read:
        templates = dict(self._options["templates"] or {})
        widths = None if earlier is None else earlier.structure.widths
        known = None if self._options["labels"] is None else check_labels(self._options["labels"])
        if earlier is not None:
            known = earlier.structure.labels
        listed = listed_examples(X)
        graphs = read_graphs(listed, list(templates), widths)
        named = flat_labels(y, graphs)
        weights = sequence_weights(sample_weight, len(graphs), words=EXAMPLES)
        codes, labels = read_labels(named, graphs.offsets, known, words=EXAMPLES)
        if not weights.all():  # Read first as they stand, so that an error names the place that the user knows.
            kept = np.flatnonzero(weights).tolist()
            graphs, weights = read_graphs([listed[n] for n in kept], list(templates), widths), weights[kept]
            codes, labels = read_labels([named[n] for n in kept], graphs.offsets, known, words=EXAMPLES)
        if earlier is not None:
            return _Read(graphs, codes, weights, earlier.structure)
        structure = make_structure(labels, graphs.widths, self._options["edge_weights"], templates)
        return _Read(graphs, codes, weights, structure)

    def _start(self, structure: Structure) -> Floats:
        """Zeros or, for a warm start, the weights of the last fit."""
        earlier: Trained | None = self.__dict__.get("_trained")
        if earlier is None or not self._options["warm_start"]:
            return np.zeros(structure.length)
        if earlier.structure.names() != structure.names():
            raise OptionError("warm_start goes on with the same labels and features, and these are others.")
        return earlier.weights.copy()

    def _solver(self, objective: GraphObjective) -> str:
        solver = self._options["solver"]
        if solver == "auto" and self._options["inference"] == "gibbs":
            if self._options["step_size"] is not None:
                return "sgd"
            if objective.apart is not None:
                return ASCENT
        return chosen_solver(solver, objective.penalties)

    def _objective_of(self, read: _Read) -> GraphObjective:
        penalties = read_prior(self._options["prior"], read.structure.length)
        return GraphObjective(read.structure, read.graphs, read.codes, read.weights, penalties, self._engine())

    def _plan(self, expectations: str, solver: str, *, online: bool = False) -> Plan:
        options = self._options
        asked = options["expectations"]
        return Plan(
            solver,
            0.1 if options["step_size"] is None else options["step_size"],
            options["decay"],
            options["batch_size"],
            options["average"],
            options["shuffle"] and not online,
            expectations if asked == "auto" else asked,
            options["n_samples"],
            options["n_sweeps"],
            options["random_state"],
        )

    def _stochastic(
        self, read: _Read, objective: GraphObjective, solver: str, *, online: bool = False
    ) -> GraphStochastic:
        """online: examples in their order, each call for itself."""
        wide = len(objective.routes.wide) > 0 and self._options["inference"] in ("auto", "gibbs")
        return GraphStochastic(
            read.structure,
            read.graphs,
            read.codes,
            read.weights,
            objective.penalties,
            self._plan("gibbs" if wide else "exact", solver, online=online),
            self._engine(),
            unit=1.0 if online else None,
        )

    def _problem(self, read: _Read, solver: str) -> str:
        """What tells this fit from others, for checkpoints."""
        arrays = [array for part in read.graphs.parts for array in (part.members, part.features, part.offsets)]
        names = ("prior", "inference", "max_cells", "decay", "batch_size", "average", "shuffle", "expectations")
        steering = [self._options[name] for name in (*names, "n_samples", "n_sweeps", "random_state")]
        step = self._options["step_size"]
        matrices = [template.matrix for template in read.structure.templates]
        return fingerprint(
            "GraphCRF", solver, arrays, read.codes, read.weights, matrices, steering, None if callable(step) else step
        )

    def _accept(
        self,
        read: _Read,
        objective: GraphObjective,
        found: Fit,
        rank: FeatureRank,
        *,
        updates: int = 0,
        walk: Mapping[str, Floats] | None = None,
        standing: Standing | None = None,
    ) -> Self:
        certificate, log_likelihood, value, relative, sums = certify(objective, found.weights, standing)
        separated = certificate.exists is False
        forms = {EDGES: self._options["edge_weights"], **(self._options["templates"] or {})}
        fresh = copy.copy(self)
        fresh.__dict__.update({"_options": dict(self._options)})
        fresh.__dict__["_trained"] = Trained(read.structure, found.weights, forms, relative, updates, walk or {})
        domain = Domain([Variable.discrete("label", read.structure.labels)])
        nodes = (read.codes, read.graphs.offsets, read.weights)
        fresh.__dict__["_sums"] = sums.with_shares(*nodes, read.structure.size)
        fresh.summary_ = Summary(domain, {}, len(read.graphs), float(read.weights.sum()))
        outcome, perceptron = found.outcome, found.method == "perceptron"
        estimate = "maximum likelihood" if self._options["prior"] is None else "posterior mode"
        receipt = Report(
            model=f"GraphCRF, {read.structure.size} labels, {read.structure.templates[0].features:,} features of nodes",
            rows=len(read.graphs),
            weight=float(read.weights.sum()),
            passes=1,
            method=found.method,
            estimate="averaged perceptron" if perceptron else estimate,
            log_likelihood=log_likelihood,
            objective=value,
            n_params=rank.value,
            certificate=certificate,
            converged=outcome.converged and not perceptron,
            iterations=outcome.state.iteration,
            history=outcome.history,
            stop_reason=outcome.stop_reason,
            plan=objective.routes.said(WORDS[objective.engine.wide]),
            warnings=(*_notes(objective), *((NO_MAXIMUM,) if separated else ()), *rank.notes()),
        )
        fresh.report_ = settled(receipt, self._options["tolerance"], relative)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def n_params_(self) -> int:
        """The number of weights that the examples tell apart, or a bound of it, as the report says."""
        return self.report_.n_params

    def to_plain(self) -> dict[str, Any]:
        """Options, parameters, summary and report as plain data; functions as the numbers they gave in the fit."""
        found = super().to_plain()
        options = found["options"]
        trained: Trained | None = self.__dict__.get("_trained")
        forms = {EDGES: options["edge_weights"], **(options["templates"] or {})}
        if any(callable(form) for form in forms.values()):
            if trained is None:
                raise OptionError("A GraphCRF with a function as a template cannot be saved before the fit.")
            forms = {name: trained.tabulated().get(name, form) for name, form in forms.items()}
        options["edge_weights"] = forms.pop(EDGES)
        options["templates"] = forms or None
        return found

    def _fitted_state(self) -> dict[str, Any]:
        return {**self._state.to_plain(), **self._plain_sums()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.__dict__["_trained"] = Trained.from_plain(state)
        self._restore_sums(state)


def _notes(objective: GraphObjective) -> tuple[str, ...]:
    """What a report says about an objective that is not the likelihood itself."""
    if objective.exact:
        return ()
    wide = len(objective.routes.wide)
    if objective.engine.wide == "loopy":
        rest = "" if objective.converged else ", and its messages did not come to rest"
        return (f"log-likelihood of {counted(wide, 'graph')} by Bethe's approximation{rest}",)
    found = f"log-likelihood of {counted(wide, 'graph')} is the pseudo-log-likelihood"
    if objective.engine.wide == "gibbs":
        return (found,)
    return (f"{found}; where labels hardly change along edges it makes edges too strong: compare inference='gibbs'",)
