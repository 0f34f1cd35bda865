"""Conditional random fields on any graph: labels of nodes, given what is known about nodes, edges and cliques."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.checks import whole_number
from suffice.errors import OptionError, SamplingWarning, warn
from suffice.families.base import generator
from suffice.models.conditional_field.declaration import ConditionalField
from suffice.models.conditional_field.evaluation import Evaluation, evaluate
from suffice.models.conditional_field.labels import counted, listed_labels, read_labels
from suffice.models.conditional_field.marginals import Marginals
from suffice.models.graph_crf.decoding import beliefs_of, best_codes, drawn_codes, label_scores
from suffice.models.graph_crf.example import GraphExample
from suffice.models.graph_crf.fitted import GraphFitted
from suffice.models.graph_crf.graphs import EDGES, EXAMPLES, NODES, Graphs, flat_labels, read_graphs
from suffice.models.graph_crf.inference import Beliefs
from suffice.models.graph_crf.options import check_options
from suffice.models.graph_crf.routes import spans
from suffice.models.graph_crf.sampling import SampledMarginals, SampledNodes
from suffice.models.graph_crf.task import GraphTask
from suffice.options import own_options

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class GraphCRF(ConditionalField):
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

    _words = EXAMPLES

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
        random_state: Any = 0,
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

    def _task(self) -> GraphTask:
        return GraphTask(self._options)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, validation: tuple[Any, Any] | None = None) -> Self:
        """Learn the weights.

        Args:
            X: examples: `GraphExample`, or tuples (nodes, edges, edge features).
            y: the labels of the nodes of each example; those of a picture may be an array (height, width).
            sample_weight: how many examples each example stands for (n,); those of weight 0 are left out.
            validation: examples and labels (X, y); the fit ends when their log-likelihood no longer rises.

        Returns:
            self
        """
        return self._learn(X, y, sample_weight, validation)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go through these examples once, in their order, with steps of `step_size`: stochastic ascent.

        The prior counts with one over the number of examples of this call for each. The first call begins at zero and
        settles the labels, unless `labels` says them. With solver="adam" or "perceptron" the updates are those, else
        plain ascent; moments and means go on from call to call. An example of weight w moves them w times as far.
        """
        return self._go_on(X, y, sample_weight)

    # -- weights -----------------------------------------------------------------------------------------------------

    @property
    def weight_names_(self) -> list[tuple[Any, ...]]:
        """The name of each weight: ("nodes", label, feature), ("edges", label, label, feature) and so on."""
        return self.fitted_.structure.names()

    @property
    def node_weights_(self) -> Floats:
        """Weights (label, feature) of the nodes."""
        return self.template_weights(NODES)

    @property
    def edge_weights_(self) -> Floats:
        """Weights (label, label, feature) of the edges, as they act: an edge scores ``edge_weights_[a, b] @ f``.

        With ``edge_weights="symmetric"`` the two labels may change places, with "equal" all weights of two different
        labels are 0 and those of two equal ones do not depend on the label.
        """
        return self.template_weights(EDGES)

    def template_weights(self, name: str) -> Floats:
        """The weights of a template as they act, (label, ..., label, feature)."""
        return self.fitted_.template_weights(name)

    # -- predictions -------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> list[list[Any]]:
        """The most probable labels of each example, one for each node.

        They are exact where the graph allows it; of graphs too wide, the best that loopy belief propagation and
        annealing find.
        """
        graphs = self._graphs(X)
        return self._named(self._best(graphs), graphs.offsets)

    def predict_marginals(self, X: Any) -> list[Marginals]:
        """The probability of every label at every node, given the whole example: an array (nodes, label) each.

        Those of Gibbs sampling (`inference="gibbs"`, graphs too wide) have `standard_errors` (nodes, label), an
        `effective_sample_size` and an `r_hat`; a warning says where their chains do not mix.
        """
        graphs = self._graphs(X)
        found, sampled = self._beliefs(graphs)
        if sampled is None:
            return [Marginals(found.tables[0][a:b], self.labels_) for a, b in spans(graphs.offsets)]
        places = enumerate(spans(graphs.offsets))
        return [SampledMarginals.drawn(found.tables[0][a:b], self.labels_, sampled, n, (a, b)) for n, (a, b) in places]

    def sample_labels(self, X: Any, n: int = 1, *, random_state: Any = None) -> list[list[list[Any]]]:
        """For each example n draws of its labels from p(labels | example)."""
        graphs, state = self._graphs(X), self.fitted_
        n, rng = whole_number(n, "n", 0), generator(random_state)
        codes, said = drawn_codes(state.structure, graphs, state.weights, self._task().engine, n, rng)
        if said is not None and said.words():
            warn(f"The labels drawn are not to be relied on: {said.words()}.", SamplingWarning)
        return [
            [[self.labels_[code] for code in draw[a:b].tolist()] for draw in codes] for a, b in spans(graphs.offsets)
        ]

    def log_partition(self, example: GraphExample) -> float:
        """Log Z of one example: the log of the sum over all labels of exp(score), natural logarithm.

        Of a graph too wide for exact inference it is Bethe's approximation, and a warning says so.
        """
        return float(self.log_partitions([example])[0])

    def log_partitions(self, X: Any) -> Floats:
        """Log Z of each example (n,)."""
        return self._beliefs(self._graphs(X), partition=True)[0].log_partition

    # -- how good ----------------------------------------------------------------------------------------------------

    def score_samples(self, X: Any, y: Any) -> Floats:
        """Log p(labels | example) of each example (n,), natural logarithm."""
        graphs, state = self._graphs(X), self.fitted_
        codes, _ = read_labels(flat_labels(y, graphs), graphs.offsets, self.labels_, words=EXAMPLES)
        scores = state.structure.scores(state.weights, graphs)
        own = label_scores(state.structure, graphs, scores, codes)
        return own - self._beliefs(graphs, partition=True)[0].log_partition

    def evaluate(self, X: Any, y: Any) -> Evaluation:
        """The share of nodes predicted right, and precision, recall and F1 of each label.

        Labels that the fit has not seen count as missed.
        """
        graphs = self._graphs(X)
        truth = listed_labels(flat_labels(y, graphs), graphs.offsets, words=EXAMPLES)
        return evaluate(truth, self._named(self._best(graphs), graphs.offsets))

    # -- behind the questions ----------------------------------------------------------------------------------------

    def _graphs(self, X: Any) -> Graphs:
        structure = self.fitted_.structure
        return read_graphs(X, [template.name for template in structure.templates[2:]], structure.widths)

    def _best(self, graphs: Graphs) -> Ints:
        state, rng = self.fitted_, generator(self._options["random_state"])
        return best_codes(state.structure, graphs, state.weights, self._task().engine, rng)

    def _beliefs(self, graphs: Graphs, *, partition: bool = False) -> tuple[Beliefs, SampledNodes | None]:
        state, rng = self.fitted_, generator(self._options["random_state"])
        found, wide, sampled = beliefs_of(state.structure, graphs, state.weights, self._task().engine, rng)
        if sampled is not None and not partition and sampled.words():
            warn(f"The sampled marginals are not to be relied on: {sampled.words()}.", SamplingWarning)
        words = []
        if partition and len(wide):
            words.append(
                f"{counted(len(wide), 'graph')} {'is' if len(wide) == 1 else 'are'} too wide for exact inference, "
                f"example {int(wide[0])} the first: the log partition is Bethe's approximation."
            )
        if not found.converged and (partition or self._options["inference"] != "gibbs"):
            words.append("Loopy belief propagation did not come to rest; use inference='gibbs' for marginals.")
        if words:
            warn(" ".join(words))
        return found, sampled

    def _named(self, codes: Ints, offsets: Ints) -> list[list[Any]]:
        labels = self.labels_
        return [[labels[code] for code in codes[a:b].tolist()] for a, b in spans(offsets)]

    # -- files -------------------------------------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """Options, parameters, summary and report as plain data; functions as the numbers they gave in the fit."""
        found = super().to_plain()
        options = found["options"]
        forms = {EDGES: options["edge_weights"], **(options["templates"] or {})}
        if any(callable(form) for form in forms.values()):
            if found["fitted"] is None:
                raise OptionError("A GraphCRF with a function as a template cannot be saved before the fit.")
            forms = {name: self.fitted_.tabulated().get(name, form) for name, form in forms.items()}
        options["edge_weights"] = forms.pop(EDGES)
        options["templates"] = forms or None
        return found

    @classmethod
    def _fitted_from(cls, plain: Mapping[str, Any]) -> GraphFitted:
        return GraphFitted.from_dict(plain)
