"""The fit of graphs: examples become long arrays, one for each template, and their labels codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.checks import choice, whole_number
from suffice.choices import Expectations, choices
from suffice.engines.workers import worker_count
from suffice.errors import DataError, OptionError, listing, shortened
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Purpose
from suffice.models.conditional_field.certificate import SlopeByChains
from suffice.models.conditional_field.existence import SeparableLabels
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.labels import counted, read_labels
from suffice.models.conditional_field.learning import ASCENT, STOCHASTIC, Climb, check_solver
from suffice.models.conditional_field.rank import FeatureRank
from suffice.models.conditional_field.stochastic import ShardedStochastic
from suffice.models.conditional_field.tables import TableForm
from suffice.models.conditional_field.task import FieldData, FieldTask
from suffice.models.graph_crf.ascent import ascend
from suffice.models.graph_crf.example import GraphExample
from suffice.models.graph_crf.existence import SeparableGraphs
from suffice.models.graph_crf.fitted import GraphCRFFitted
from suffice.models.graph_crf.graphs import EDGES, EXAMPLES, NODES, Graphs, flat_labels, listed_examples, read_graphs
from suffice.models.graph_crf.objective import WORDS, Engine, GraphObjective
from suffice.models.graph_crf.rank import graph_rank
from suffice.models.graph_crf.rounds import GraphShard, HeldGraphObjective, HeldSeparableGraphs, ReadGraphs, digest
from suffice.models.graph_crf.sampling import slope_by_chains
from suffice.models.graph_crf.stochastic import GraphEpoch, GraphStochastic
from suffice.models.graph_crf.structure import CliqueStructure, make_structure
from suffice.models.graph_crf.tables import NodeForm, NodeTable
from suffice.models.graph_crf.templates import FORMS
from suffice.sources.held import HeldHere

GraphData = FieldData[Graphs]
#: Of graphs together in this process, or of those in shards.
AnyGraphObjective = GraphObjective | HeldGraphObjective

EXPECTATIONS = choices(Expectations)


@dataclass(frozen=True, eq=False)
class GraphCRFTask(FieldTask[AnyGraphObjective, Graphs, GraphData, CliqueStructure]):
    """What a `GraphCRF` declares."""

    words = EXAMPLES
    form = NodeForm

    @property
    def engine(self) -> Engine:
        """How examples are worked on."""
        return Engine(self.options["inference"], self.options["max_cells"], self.options["threads"])

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self, given: Inputs, known: FieldFitted[CliqueStructure] | None, purpose: Purpose) -> GraphData:
        """Graphs in lists, or those of a table of nodes."""
        form, options = given["form"], self.options
        if form is None:
            return super().read(given, known, purpose)
        if given["validation"] is not None:
            raise OptionError("validation is for lists of GraphExample; a table of nodes is fitted without.")
        if options["inference"] == "gibbs" or options["templates"]:
            raise OptionError(
                "Tables of nodes are fitted graph by graph, with nodes and edges alone: not by inference='gibbs', "
                "whose chains stay beside all graphs, nor with templates=. Give a list of GraphExample."
            )
        nodes = self.table(given.data, form, given["y"], given["sample_weight"]).held(self.declared(known))
        structure = make_structure(nodes.labels, nodes.reading.widths, options["edge_weights"], {})
        if known is not None:
            if known.structure.widths != structure.widths:
                (_, width), (_, wanted) = structure.widths[NODES], known.structure.widths[NODES]
                raise DataError(f"The table has {width} columns of features; the model was fitted to {wanted}.")
            structure = known.structure
        return FieldData.of(nodes.held, structure, passes=nodes.passes)

    def table(self, X: object, form: TableForm, y: object = None, sample_weight: object = None) -> NodeTable:
        """A table of nodes that is open."""
        assert isinstance(form, NodeForm)
        return NodeTable(X, form, self.options, y, sample_weight)

    def listed(self, X: Iterable[Any]) -> list[GraphExample]:
        """The examples in a list."""
        return listed_examples(X)

    def coded(self, listed: list[GraphExample], known: FieldFitted[CliqueStructure] | None) -> Graphs:
        """Graphs; those that join a fitted value have its features."""
        return read_graphs(
            listed, list(self.options["templates"] or {}), None if known is None else known.structure.widths
        )

    def given_labels(self, y: Iterable[Any], examples: Graphs) -> Any:
        """Labels of each example, those of pictures laid out row by row."""
        return flat_labels(y, examples)

    def declared(self, known: FieldFitted[CliqueStructure] | None) -> tuple[Any, ...] | None:
        """Those of a fitted value that is known; else the labels that the options name, or None."""
        declared = super().declared(known)
        return declared if known is None else known.structure.labels

    def compared(self, X: Iterable[Any], y: Iterable[Any], structure: CliqueStructure) -> tuple[Graphs, Ints]:
        """Graphs and the codes of their labels, which a structure must know."""
        graphs = read_graphs(X, [template.name for template in structure.templates[2:]], structure.widths)
        return graphs, read_labels(flat_labels(y, graphs), graphs.offsets, structure.labels, words=EXAMPLES)[0]

    def structured(
        self,
        examples: Graphs,
        named: Any,
        codes: Ints,
        labels: tuple[Any, ...],
        weights: Floats,
        known: FieldFitted[CliqueStructure] | None,
    ) -> GraphData:
        """The data; graphs that join a fitted value have its structure."""
        if known is not None:
            return self.together(examples, codes, weights, known.structure)
        forms = self.options["edge_weights"], dict(self.options["templates"] or {})
        return self.together(examples, codes, weights, make_structure(labels, examples.widths, *forms))

    def together(self, examples: Graphs, codes: Ints, weights: Floats, structure: CliqueStructure) -> GraphData:
        """Labelled graphs in this process, as one shard."""
        return FieldData.of(HeldHere(ReadGraphs(), [GraphShard(examples, codes, weights)]), structure)

    def marks(self, data: GraphData) -> Iterable[Any]:
        """What tells labelled graphs from others."""
        return list(data.held.sum(None, digest))

    # -- the problem -------------------------------------------------------------------------------------------------

    def solver(self, objective: AnyGraphObjective) -> str:
        """The solver asked for, or the one that "auto" stands for."""
        solver = self.options["solver"]
        if solver == "auto" and self.options["inference"] == "gibbs":
            if self.options["step_size"] is not None:
                return "sgd"
            if objective.apart is not None:
                return ASCENT
        return super().solver(objective)

    def objective(self, data: GraphData) -> AnyGraphObjective:
        """The penalised log-likelihood, or what takes its place."""
        penalties = self.penalties(data.structure)
        if not data.together:
            return HeldGraphObjective(data.held, data.structure, penalties, data.weight, self.engine)
        return GraphObjective(data.structure, data.examples, data.codes, data.weights, penalties, self.engine)

    def stochastic(
        self, data: GraphData, objective: AnyGraphObjective, solver: str, *, online: bool = False
    ) -> GraphStochastic | ShardedStochastic:
        """The gradient from a few examples; online: in their order, each call for itself."""
        asked = self.options["expectations"]
        if asked == "auto":
            wide = objective.wide > 0 and self.options["inference"] in ("auto", "gibbs")
            asked = "gibbs" if wide else "exact"
        plan, unit = self.plan(solver, expectations=asked, online=online), 1.0 if online else None
        if not data.together:
            whole = 1.0 if online else data.weight / data.rows
            epoch = GraphEpoch(data.structure, objective.penalties, plan, self.engine, whole, data.rows)
            return ShardedStochastic(data.held, epoch)
        examples = (data.structure, data.examples, data.codes, data.weights)
        return GraphStochastic(*examples, objective.penalties, plan, self.engine, unit=unit)

    def climb(self, data: GraphData, objective: AnyGraphObjective, solver: str) -> Climb | None:
        """The way of a stochastic solver; None for others."""
        if solver == ASCENT and isinstance(objective, GraphObjective):
            run = self.stochastic(data, objective, solver)
            assert isinstance(run, GraphStochastic)
            return partial(ascend, objective, run)
        return super().climb(data, objective, solver)

    def moved(self, vector: Floats, before: CliqueStructure, structure: CliqueStructure) -> Floats:
        """The same weights: graphs go on with the labels and features that they have."""
        if before is not structure and before.names() != structure.names():
            raise OptionError("warm_start goes on with the same labels and features, and these are others.")
        return vector.copy()

    def rank(self, data: GraphData, objective: AnyGraphObjective, *, bounded: bool) -> FeatureRank:
        """The rank of the features, or a bound of it."""
        return graph_rank(data.structure, None if bounded else data.held)

    def separable(self, data: GraphData, objective: AnyGraphObjective) -> SeparableLabels | None:
        """The labels given, to be told from all others; they say nothing about Bethe's approximation."""
        if objective.engine.wide == "loopy" and not objective.exact:
            return None
        if isinstance(objective, HeldGraphObjective):
            return HeldSeparableGraphs(objective)
        return SeparableGraphs(data.structure, data.examples, data.codes, objective.engine)

    def chains(self, objective: AnyGraphObjective, weights: Floats) -> SlopeByChains | None:
        """The slope by fresh chains, where wide examples are sampled."""
        if isinstance(objective, HeldGraphObjective) or objective.engine.wide != "gibbs" or objective.apart is None:
            return None
        slope, _, chains = slope_by_chains(objective, weights)
        return slope, chains

    def fitted(
        self, data: GraphData, weights: Floats, rank: FeatureRank, updates: int, walk: Mapping[str, Floats]
    ) -> GraphCRFFitted:
        """The fitted value."""
        forms = {EDGES: self.options["edge_weights"], **(self.options["templates"] or {})}
        return GraphCRFFitted(data.structure, weights, rank, updates, walk, forms=forms)

    def plan_in_words(self, data: GraphData, objective: AnyGraphObjective) -> str:
        """Which engine takes how many graphs."""
        held = data.held
        if isinstance(objective, HeldGraphObjective):
            engine, shards = objective.engine_in_words or "exact inference", counted(held.shards, "shard")
            return f"{engine}, {data.steps:,} nodes in {shards} {held.location}, {counted(held.rounds, 'round')}"
        return objective.chosen.in_words(WORDS[objective.engine.wide])

    def notes(self, objective: AnyGraphObjective) -> tuple[str, ...]:
        """What a receipt says about an objective that is not the likelihood itself."""
        if objective.exact:
            return ()
        wide = objective.wide
        if objective.engine.wide == "loopy":
            rest = "" if objective.converged else ", and its messages did not come to rest"
            return (f"log-likelihood of {counted(wide, 'graph')} by Bethe's approximation{rest}",)
        note = f"log-likelihood of {counted(wide, 'graph')} is the pseudo-log-likelihood"
        if objective.engine.wide == "gibbs":
            return (note,)
        return (f"{note}; where labels hardly change along edges it makes edges too strong: compare inference='gibbs'",)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that make no sense."""
    check_solver(options)
    if not isinstance(options["inference"], str):
        raise OptionError(f"inference is {shortened(options['inference'])}; expected 'auto' or the name of a way.")
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
    choice(options["expectations"], "expectations", EXPECTATIONS)
    whole_number(options["patience"], "patience")
    worker_count(options["threads"])
    generator(options["random_state"])
    task = GraphCRFTask(options)
    task.engine  # noqa: B018  Refuses what makes no sense.
    task.plan("sgd", expectations="exact")
