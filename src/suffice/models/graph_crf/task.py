"""The fit of graphs: examples become long arrays, one for each template, and their labels codes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.errors import DataError, OptionError
from suffice.fitting.contract import Inputs, Purpose
from suffice.models.conditional_field.certificate import SlopeByChains
from suffice.models.conditional_field.existence import Standing
from suffice.models.conditional_field.labels import check_labels, counted, read_labels, sequence_weights
from suffice.models.conditional_field.learning import Climb, chosen_solver
from suffice.models.conditional_field.priors import Penalties
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.task import FieldData, FieldTask, Watch
from suffice.models.graph_crf.ascent import ASCENT, ascend
from suffice.models.graph_crf.existence import graph_standing
from suffice.models.graph_crf.fitted import GraphFitted
from suffice.models.graph_crf.graphs import EDGES, EXAMPLES, flat_labels, listed_examples, read_graphs
from suffice.models.graph_crf.objective import WORDS, Engine, GraphObjective
from suffice.models.graph_crf.rank import graph_rank
from suffice.models.graph_crf.sampling import slope_by_chains
from suffice.models.graph_crf.stochastic import GraphStochastic
from suffice.models.graph_crf.structure import Structure, make_structure

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GraphTask(FieldTask[GraphObjective]):
    """What a `GraphCRF` declares."""

    @property
    def engine(self) -> Engine:
        """How examples are worked on."""
        return Engine(self.options["inference"], self.options["max_cells"], self.options["threads"])

    def read(self, given: Inputs, known: GraphFitted | None, purpose: Purpose) -> FieldData:
        """Examples and labels; those that join a fitted value have its labels and features."""
        templates = dict(self.options["templates"] or {})
        widths = None if known is None else known.structure.widths
        declared = None if self.options["labels"] is None else check_labels(self.options["labels"])
        if known is not None:
            declared = known.structure.labels
        listed = listed_examples(given.data)
        graphs = read_graphs(listed, list(templates), widths)
        named = flat_labels(given["y"], graphs)
        weights = sequence_weights(given["sample_weight"], len(graphs), words=EXAMPLES)
        codes, labels = read_labels(named, graphs.offsets, declared, words=EXAMPLES)
        if not weights.all():  # Read first as they stand, so that an error names the place that the user knows.
            kept = np.flatnonzero(weights).tolist()
            graphs, weights = read_graphs([listed[n] for n in kept], list(templates), widths), weights[kept]
            codes, labels = read_labels([named[n] for n in kept], graphs.offsets, declared, words=EXAMPLES)
        if known is not None:
            return FieldData(graphs, codes, weights, known.structure)
        structure = make_structure(labels, graphs.widths, self.options["edge_weights"], templates)
        watch = None if given["validation"] is None else self._watch(given["validation"], structure)
        return FieldData(graphs, codes, weights, structure, watch)

    def _watch(self, validation: Any, structure: Structure) -> Watch:
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
        objective = GraphObjective(structure, graphs, codes, ones, Penalties(), self.engine)
        return lambda weights: objective.log_likelihood(weights) / len(graphs)

    def solver(self, objective: GraphObjective) -> str:
        """The solver asked for, or the one that "auto" stands for."""
        solver = self.options["solver"]
        if solver == "auto" and self.options["inference"] == "gibbs":
            if self.options["step_size"] is not None:
                return "sgd"
            if objective.apart is not None:
                return ASCENT
        return chosen_solver(solver, objective)

    def objective(self, data: FieldData) -> GraphObjective:
        """The penalised log-likelihood, or what takes its place."""
        penalties = self.penalties(data.structure)
        return GraphObjective(data.structure, data.examples, data.codes, data.weights, penalties, self.engine)

    def stochastic(
        self, data: FieldData, objective: GraphObjective, solver: str, *, online: bool = False
    ) -> GraphStochastic:
        """The gradient from a few examples; online: in their order, each call for itself."""
        asked = self.options["expectations"]
        if asked == "auto":
            wide = len(objective.routes.wide) > 0 and self.options["inference"] in ("auto", "gibbs")
            asked = "gibbs" if wide else "exact"
        plan, unit = self.plan(solver, expectations=asked, online=online), 1.0 if online else None
        examples = (data.structure, data.examples, data.codes, data.weights)
        return GraphStochastic(*examples, objective.penalties, plan, self.engine, unit=unit)

    def climb(self, data: FieldData, objective: GraphObjective, solver: str) -> Climb | None:
        """The way of a stochastic solver; None for others."""
        if solver == ASCENT:
            return partial(ascend, objective, self.stochastic(data, objective, solver))
        return super().climb(data, objective, solver)

    def moved(self, vector: Floats, before: Structure, structure: Structure) -> Floats:
        """The same weights: graphs go on with the labels and features that they have."""
        if before is not structure and before.names() != structure.names():
            raise OptionError("warm_start goes on with the same labels and features, and these are others.")
        return vector.copy()

    def rank(self, data: FieldData, objective: GraphObjective, *, bounded: bool) -> FeatureRank:
        """The rank of the features, or a bound of it."""
        return graph_rank(data.structure, None if bounded else data.examples)

    def existence(self, data: FieldData, objective: GraphObjective, weights: Floats, rank: FeatureRank) -> Standing:
        """Whether some direction of the weights separates the labels given from all others."""
        return graph_standing(objective, data.examples, data.codes, weights, rank)

    def chains(self, objective: GraphObjective, weights: Floats) -> SlopeByChains | None:
        """The slope by fresh chains, where wide examples are sampled."""
        if objective.engine.wide != "gibbs" or objective.apart is None:
            return None
        slope, _, found = slope_by_chains(objective, weights)
        return slope, found

    def fitted(self, data: FieldData, weights: Floats, rank: FeatureRank, updates: int, walk: Any) -> GraphFitted:
        """The fitted value."""
        forms = {EDGES: self.options["edge_weights"], **(self.options["templates"] or {})}
        return GraphFitted(data.structure, weights, rank, updates, walk, forms=forms)

    def plan_in_words(self, data: FieldData, objective: GraphObjective) -> str:
        """Which engine takes how many graphs."""
        return objective.routes.said(WORDS[objective.engine.wide])

    def notes(self, objective: GraphObjective) -> tuple[str, ...]:
        """What a receipt says about an objective that is not the likelihood itself."""
        if objective.exact:
            return ()
        wide = len(objective.routes.wide)
        if objective.engine.wide == "loopy":
            rest = "" if objective.converged else ", and its messages did not come to rest"
            return (f"log-likelihood of {counted(wide, 'graph')} by Bethe's approximation{rest}",)
        found = f"log-likelihood of {counted(wide, 'graph')} is the pseudo-log-likelihood"
        if objective.engine.wide == "gibbs":
            return (found,)
        return (
            f"{found}; where labels hardly change along edges it makes edges too strong: compare inference='gibbs'",
        )
