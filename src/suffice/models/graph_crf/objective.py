"""The objective of a graph CRF: the SUM over examples of log p(labels | example, weights), less the prior's penalty.

Its gradient is the observed less the expected sum of every feature, ``sum_i phi(y_i, x_i) - E[phi(y, x_i) | x_i]``: the
expectation is over the labels, with the example as it is. Examples too wide for exact inference enter by their
pseudo-likelihood, which is concave too, or by Bethe's approximation, which need not be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.array_types import Floats, Ints
from suffice.checks import whole_number
from suffice.choices import GraphMethod, choices
from suffice.engines import registry
from suffice.engines.registry import Planner
from suffice.errors import SizeError
from suffice.models.conditional_field.objective import FieldObjective
from suffice.models.conditional_field.priors import WeightPenalties
from suffice.models.graph_crf.engine_choice import EngineChoice, chosen_by_name, chosen_by_shape, everything
from suffice.models.graph_crf.graphs import Graphs
from suffice.models.graph_crf.inference import EVALUATIONS, GraphInference, nodes_of
from suffice.models.graph_crf.pseudo import PseudoLikelihood
from suffice.models.graph_crf.structure import CliqueStructure

#: What `inference` may be, besides the name of a registered engine.
METHODS = choices(GraphMethod)
WORDS = {
    "pseudo-likelihood": "pseudo-likelihood",
    "loopy": "loopy belief propagation",
    "gibbs": "Gibbs sampling, measured by the pseudo-likelihood,",
}


@dataclass(frozen=True)
class Engine:
    """How examples are worked on: the method for wide ones, the cells a junction tree may have, and threads."""

    method: str = "auto"
    most_cells: int = 2**19
    threads: int | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        self.planner  # noqa: B018  Refuses a name that nobody has.
        whole_number(self.most_cells, "max_cells")

    @property
    def wide(self) -> str:
        """The method for examples that are too wide."""
        return self.method if self.method in WORDS else "pseudo-likelihood"

    @property
    def planner(self) -> Planner | None:
        """What plans for the registered engine that the method names; None where it names none."""
        return None if self.method in METHODS else registry.named(self.method, METHODS, "inference")

    def choose(self, structure: CliqueStructure, graphs: Graphs, *, asking: bool = False) -> EngineChoice:
        """The engine for each example of a fit or, when asking, of a question."""
        if (planner := self.planner) is not None:
            return chosen_by_name(self.method, planner, structure, graphs)
        if self.method == "loopy" or (self.method == "pseudo-likelihood" and not asking):
            return everything(graphs)
        chosen = chosen_by_shape(structure, graphs, self.most_cells)
        if self.method == "exact" and len(chosen.wide):
            raise SizeError(
                f"Example {int(chosen.wide[0])}{_others(len(chosen.wide) - 1)} a junction tree of more than "
                f"{self.most_cells:,} cells. Raise max_cells, or use inference='auto'."
            )
        return chosen


def _others(number: int) -> str:
    return " needs" if not number else f" and {number:,} other{'s' * (number > 1)} need"


class GraphObjective(FieldObjective[CliqueStructure]):
    """The penalised log-likelihood of labelled graphs; equal examples are worked on once."""

    def __init__(
        self,
        structure: CliqueStructure,
        graphs: Graphs,
        codes: Ints,
        shares: Floats,
        penalties: WeightPenalties,
        engine: Engine,
    ) -> None:
        """Codes (nodes,) of the labels; shares (n,): how often each example counts."""
        self.structure, self.penalties, self.engine = structure, penalties, engine
        self.weight = float(shares.sum())
        self._given = graphs, codes, shares
        self.features = np.zeros(structure.length)
        self.converged = True
        self.chosen = engine.choose(structure, graphs)
        narrow = np.ones(len(graphs), np.bool_)
        if engine.wide != "loopy":
            narrow[self.chosen.wide] = False
        self._exact: tuple[GraphInference, Floats] | None = None
        self._pseudo: tuple[Graphs, PseudoLikelihood] | None = None
        #: Wide examples with the codes of their labels and their shares, where they are not left to loopy messages.
        self.apart: tuple[Graphs, Ints, Floats] | None = None
        inside, outside = np.flatnonzero(narrow), np.flatnonzero(~narrow)
        if len(inside):
            self._take_exact(graphs.chosen(inside), codes[nodes_of(graphs, inside)], shares[inside])
        if len(outside):
            part = graphs.chosen(outside)
            labels = codes[nodes_of(graphs, outside)]
            self._pseudo = part, PseudoLikelihood(structure, part, labels, shares[outside])
            self.apart = part, labels, shares[outside]

    def _take_exact(self, graphs: Graphs, codes: Ints, shares: Floats) -> None:
        structure, engine = self.structure, self.engine
        self.features = structure.observed(graphs, codes, shares)
        firsts, label = graphs.distinct()
        once = graphs.chosen(firsts)
        inference = GraphInference(
            structure, once, engine.choose(structure, once), threads=engine.threads, calls=EVALUATIONS
        )
        self._exact = inference, np.bincount(label, shares, len(firsts)).astype(np.float64)

    @property
    def wide(self) -> int:
        """How many examples are too wide for exact inference."""
        return len(self.chosen.wide)

    @property
    def at_most_one(self) -> bool:
        """Pseudo-likelihoods are at most 1 too; Bethe's approximation has no bound."""
        return self.engine.wide != "loopy"

    @property
    def engine_in_words(self) -> str:
        """How expectations were computed that are not exact."""
        return "" if self.exact else self.chosen.in_words(WORDS[self.engine.wide])

    @property
    def exact(self) -> bool:
        """Whether every expectation is exact."""
        return self._pseudo is None and not len(self.chosen.wide)

    @property
    def concave(self) -> bool:
        """Whether what was maximised is concave and known, so that a prior bounds what is left of it."""
        return self.exact or self.engine.wide == "pseudo-likelihood"

    def observed(self) -> Floats:
        """The features (k,) of the labels of all examples, weighted and summed."""
        if self.apart is None:
            return self.features
        return self.features + self.structure.observed(*self.apart)

    def variance(self, weights: Floats) -> Floats:
        """A bound of the variance of the sum of every feature (k,) from below."""
        graphs, codes, shares = self._given
        pseudo = PseudoLikelihood(self.structure, graphs, codes, shares)
        return pseudo.variances(self.structure, graphs, self.structure.scores(weights, graphs))

    def narrow(self, weights: Floats) -> tuple[float, Floats]:
        """Log-likelihood and gradient of all examples but those `apart`."""
        total = float(self.features @ weights)
        gradient = self.features.copy()
        if self._exact is not None:
            inference, shares = self._exact
            beliefs = inference.solve(self.structure.scores(weights, inference.graphs))
            self.converged = beliefs.converged
            total -= float(shares @ beliefs.log_partition)
            gradient -= expected_features(self.structure, inference.graphs, beliefs.tables, shares)
        return total, gradient

    def forget(self) -> None:
        """Let loopy messages begin anew."""
        if self._exact is not None:
            self._exact[0].forget()

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The log-likelihood and its slope (k,); of wide examples what takes its place."""
        total, gradient = self.narrow(weights)
        if self._pseudo is not None:
            graphs, pseudo = self._pseudo
            value, slopes = pseudo(self.structure.scores(weights, graphs))
            total += value
            gradient += self.structure.gathered(slopes, graphs)
        return total, gradient


def expected_features(structure: CliqueStructure, graphs: Graphs, tables: list[Floats], shares: Floats) -> Floats:
    """The expected features (k,) of the distributions of cliques (c, cells), weighted by example (n,) and summed."""
    weighted = [
        table * shares[part.owner][:, None] if (shares != 1.0).any() else table
        for table, part in zip(tables, graphs.parts, strict=True)
    ]
    return structure.gathered(weighted, graphs)
