"""Conditional random fields on any graph: labels of nodes, given what is known about nodes, edges and cliques."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.engines.linear_predictor import with_one_blas_thread
from suffice.errors import OptionError, listing
from suffice.fitting import Estimator
from suffice.iteration import fingerprint
from suffice.models.chain_crf.labels import check_labels, read_labels, sequence_weights
from suffice.models.chain_crf.learning import SOLVERS, STOCHASTIC, Fit, chosen_solver
from suffice.models.chain_crf.priors import read_prior
from suffice.models.chain_crf.stochastic import Plan
from suffice.models.graph_crf.graphs import EDGES, NODES, Graphs, read_graphs
from suffice.models.graph_crf.learning import certify, learn, passed
from suffice.models.graph_crf.objective import WORDS, GraphObjective
from suffice.models.graph_crf.reading import EXAMPLES, Reading, Trained, flat_labels
from suffice.models.graph_crf.stochastic import GraphStochastic
from suffice.models.graph_crf.structure import Structure, make_structure
from suffice.models.graph_crf.templates import FORMS
from suffice.report import Report
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
            samples their marginals.
        max_cells: most cells of the tables of one junction tree.
        max_iter: most iterations; of a stochastic solver: passes over the examples.
        tolerance: on the norm of the gradient divided by that of the weights (at least 1).
        step_size: of a stochastic solver: a number, a list, or a function of the number of the update.
        decay: exponent with which a constant `step_size` falls, from 0 to 1.
        batch_size: examples of one update.
        average: whether a stochastic solver returns the mean of its updates.
        shuffle: whether the order of the examples is drawn anew for each pass.
        expectations: of a stochastic gradient: "exact" (by `inference`), "gibbs", "sampled" (independent draws), or
            "auto": Gibbs sampling where a graph is too wide, else exact.
        n_samples: draws of the labels of an example for sampled expectations.
        n_sweeps: sweeps of Gibbs sampling in each update; chains begin at the labels given and go on from update to
            update.
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
        step_size: Any = 0.1,
        decay: float = 0.0,
        batch_size: int = 1,
        average: bool = False,
        shuffle: bool = True,
        expectations: str = "auto",
        n_samples: int = 10,
        n_sweeps: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        """See the class."""
        options = dict(locals())
        for name in ("self", "__class__"):
            options.pop(name, None)
        super().__init__(**options)
        self._check_options()

    def _check_options(self) -> None:
        options = self._options
        if options["solver"] not in SOLVERS:
            raise OptionError(f"solver is {options['solver']!r}; expected one of {listing(SOLVERS)}.")
        if options["solver"] == "perceptron" and options["prior"] is not None:
            raise OptionError("The perceptron has no objective that a prior could enter; give prior=None.")
        if options["inference"] == "gibbs" and options["solver"] not in ("auto", *STOCHASTIC):
            raise OptionError(
                f"inference='gibbs' gives noisy gradients, and solver={options['solver']!r} needs exact ones. Use "
                "solver='sgd' or 'adam', or another inference."
            )
        templates = options["templates"]
        if templates is not None and not (
            isinstance(templates, Mapping) and all(isinstance(name, str) for name in templates)
        ):
            raise OptionError(f"templates is {templates!r}; expected a dict from names to forms of their weights.")
        if templates and {NODES, EDGES} & set(templates):
            raise OptionError(f"templates may not be named {NODES!r} or {EDGES!r}: these are there already.")
        for name, form in {EDGES: options["edge_weights"], **(templates or {})}.items():
            if not (callable(form) or isinstance(form, np.ndarray) or (isinstance(form, str) and form in FORMS)):
                raise OptionError(
                    f"The weights of {name} are {form!r}; expected one of {listing(FORMS)}, or a function of labels."
                )
        self._engine()
        self._plan("exact", "sgd")

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Learn the weights.

        Args:
            X: examples: `GraphExample`, or tuples (nodes, edges, edge features).
            y: the labels of the nodes of each example; those of a picture may be an array (height, width).
            sample_weight: how many examples each example stands for (n,).

        Returns:
            self
        """
        read = self._read(X, y, sample_weight, None)
        start = self._start(read.structure)
        objective = self._objective_of(read)
        solver = self._solver(read.structure)
        stochastic = self._stochastic(read, objective, solver) if solver in STOCHASTIC else None
        control = self._control()
        problem = "" if control.checkpoint is None else self._problem(read, solver)

        def call() -> Fit:
            return learn(objective, start, control, solver=solver, stochastic=stochastic, problem=problem)

        # Threads of BLAS for the long vectors of the solver would fight with ours for the same cores.
        return self._accept(read, objective, with_one_blas_thread(call), updates=0)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Go through these examples once, in their order, with steps of `step_size`: stochastic ascent.

        The prior counts with one over the number of examples of this call for each. The first call begins at zero and
        settles the labels, unless `labels` says them. With solver="adam" or "perceptron" the updates are those, else
        plain ascent.
        """
        earlier: Trained | None = self.__dict__.get("_trained")
        read = self._read(X, y, sample_weight, earlier)
        start = np.zeros(read.structure.length) if earlier is None else earlier.weights
        objective = self._objective_of(read)
        solver = self._options["solver"] if self._options["solver"] in STOCHASTIC else "sgd"
        run = self._stochastic(read, objective, solver, shuffle=False)
        after = run.epoch(run.memory_at(start, 0 if earlier is None else earlier.updates))
        found = passed(after["mean"] if run.averaged else after["raw"], objective, solver)
        return self._accept(read, objective, found, updates=int(after["updates"]))

    def unlearn(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Not offered: the examples of an iterative fit cannot be taken out again."""
        raise OptionError("A GraphCRF has no finite statistics to take examples out of; fit it again without them.")

    def _read(self, X: Any, y: Any, sample_weight: Any, earlier: Trained | None) -> _Read:
        templates = dict(self._options["templates"] or {})
        graphs = read_graphs(X, list(templates), None if earlier is None else earlier.structure.widths)
        known = None if self._options["labels"] is None else check_labels(self._options["labels"])
        if earlier is not None:
            known = earlier.structure.labels
        codes, labels = read_labels(flat_labels(y, graphs), graphs.offsets, known, words=EXAMPLES)
        weights = sequence_weights(sample_weight, len(graphs), words=EXAMPLES)
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

    def _solver(self, structure: Structure) -> str:
        solver = self._options["solver"]
        if solver == "auto" and self._options["inference"] == "gibbs":
            return "sgd"
        return chosen_solver(solver, read_prior(self._options["prior"], structure.length))

    def _objective_of(self, read: _Read) -> GraphObjective:
        penalties = read_prior(self._options["prior"], read.structure.length)
        return GraphObjective(read.structure, read.graphs, read.codes, read.weights, penalties, self._engine())

    def _plan(self, expectations: str, solver: str, shuffle: bool | None = None) -> Plan:
        options = self._options
        asked = options["expectations"]
        return Plan(
            solver,
            options["step_size"],
            options["decay"],
            options["batch_size"],
            options["average"],
            options["shuffle"] if shuffle is None else shuffle,
            expectations if asked == "auto" else asked,
            options["n_samples"],
            options["n_sweeps"],
            options["random_state"],
        )

    def _stochastic(
        self, read: _Read, objective: GraphObjective, solver: str, *, shuffle: bool | None = None
    ) -> GraphStochastic:
        wide = len(objective.routes.wide) > 0 and self._options["inference"] in ("auto", "gibbs")
        plan = self._plan("gibbs" if wide else "exact", solver, shuffle)
        return GraphStochastic(
            read.structure, read.graphs, read.codes, read.weights, objective.penalties, plan, self._engine()
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

    def _accept(self, read: _Read, objective: GraphObjective, found: Fit, *, updates: int) -> Self:
        certificate, log_likelihood, value, relative = certify(objective, found.weights)
        forms = {EDGES: self._options["edge_weights"], **(self._options["templates"] or {})}
        fresh = copy.copy(self)
        fresh.__dict__.update({"_options": dict(self._options)})
        fresh.__dict__["_trained"] = Trained(read.structure, found.weights, forms, relative, updates)
        domain = Domain([Variable.discrete("label", read.structure.labels)])
        fresh.summary_ = Summary(domain, {}, len(read.graphs), float(read.weights.sum()))
        outcome, perceptron = found.outcome, found.method == "perceptron"
        estimate = "maximum likelihood" if self._options["prior"] is None else "posterior mode"
        fresh.report_ = Report(
            model=f"GraphCRF, {read.structure.size} labels, {read.structure.templates[0].features:,} features of nodes",
            rows=len(read.graphs),
            weight=float(read.weights.sum()),
            passes=1,
            method=found.method,
            estimate="averaged perceptron" if perceptron else estimate,
            log_likelihood=log_likelihood,
            objective=value,
            n_params=read.structure.length,
            certificate=certificate,
            converged=outcome.converged and not perceptron,
            iterations=outcome.state.iteration,
            history=outcome.history,
            stop_reason=outcome.stop_reason,
            plan=objective.routes.said(WORDS[objective.engine.wide]),
            warnings=_notes(objective),
        )
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def n_params_(self) -> int:
        """The number of weights."""
        return self._state.structure.length

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
        return self._state.to_plain()

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.__dict__["_trained"] = Trained.from_plain(state)


def _notes(objective: GraphObjective) -> tuple[str, ...]:
    """What a report says about an objective that is not the likelihood itself."""
    if objective.exact:
        return ()
    wide = len(objective.routes.wide)
    if objective.engine.wide == "loopy":
        rest = "" if objective.converged else ", and its messages did not come to rest"
        return (f"log-likelihood of {wide:,} graphs by Bethe's approximation{rest}",)
    found = f"log-likelihood of {wide:,} graphs is their pseudo-log-likelihood"
    if objective.engine.wide == "gibbs":
        return (found,)
    return (f"{found}; where labels hardly change along edges it makes edges too strong: compare inference='gibbs'",)
