"""Conditional random fields on any graph: labels of nodes, given what is known about nodes, edges and cliques."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Self, Unpack

from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.choices import EdgeWeights, Expectations, FieldSolver, GraphMethod, Registered
from suffice.errors import OptionError
from suffice.models.conditional_field.declaration import ConditionalField
from suffice.models.conditional_field.learning import STOCHASTIC, idle_unless
from suffice.models.graph_crf.decoding import GraphDecoder
from suffice.models.graph_crf.example import GraphExample
from suffice.models.graph_crf.fitted import GraphCRFFitted
from suffice.models.graph_crf.graphs import EDGES, NODES
from suffice.models.graph_crf.task import GraphCRFTask, check_options
from suffice.options import Idle, RunOptions, own_options


def _may_draw(given: Mapping[str, Any]) -> bool:
    """Whether expectations are drawn, at least those of graphs that are too wide."""
    asked = given["expectations"]
    return asked in ("sampled", "gibbs") or (asked == "auto" and given["inference"] in ("auto", "gibbs"))


class GraphCRF(ConditionalField):
    """A conditional random field on graphs: ``p(y | x) ~ exp(sum over cliques c of w . phi(x_c, y_c))``.

    X are `GraphExample`, or tuples (nodes, edges, edge features); y are the labels of the nodes of each example, which
    for a picture may be an array (height, width). Examples have features of nodes, edges with features, and cliques of
    further templates. All cliques of a template share its weights; every example may have a graph of its own. The
    objective is the SUM of the log-likelihood over examples, plus the log prior. Or X is a table of nodes, with
    `group=`, `node=` and `neighbours=`, and y the name of its column of labels.

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
            and end when the slope is small beside what the examples can tell; `max_iter` counts updates. Or the name of
            a registered engine (`extend.register_engine`), which takes every graph that has edges, one after another.
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
        n_samples: draws of the labels of an example for sampled expectations, or chains of Gibbs sampling.
        n_sweeps: sweeps of Gibbs sampling in each update; chains begin at the labels given (adaptive ascent: at random
            labels) and go on from update to update.
        patience: iterations without a rise on a validation set after which the fit ends.
        warm_start: start from the weights of the last fit.
        random_state: seed of all that is drawn.
        threads: None is one for each core.
        memory_limit: most bytes that the graphs of a table may take in memory, or a text such as "2GB"; half of what is
            free unless given. Beyond it they are kept in a scratch folder.
        run: see `RunOptions`.

    >>> from suffice import GraphExample, Normal
    >>> X = [GraphExample.grid([[1.0, 0.9], [-1.0, 0.2]]), GraphExample.grid([[-0.8, -1.0], [0.1, -0.9]])]
    >>> model = GraphCRF(prior=Normal(variance=10.0), edge_weights="equal").fit(X, [[1, 1, 0, 1], [0, 0, 0, 0]])
    >>> model.predict(X)
    [[1, 1, 0, 1], [0, 0, 0, 0]]
    """

    fitted_: GraphCRFFitted

    _idle = (
        *idle_unless(lambda given: given["solver"] in STOCHASTIC or given["inference"] == "gibbs"),
        Idle("n_samples", lambda given: not _may_draw(given), "expectations= are exact"),
        Idle(
            "n_sweeps",
            lambda given: given["expectations"] == "sampled" or not _may_draw(given),
            "expectations= are not those of Gibbs sampling",
        ),
        Idle(
            "max_cells",
            lambda given: given["inference"] in ("pseudo-likelihood", "loopy"),
            "no graph is taken exactly, by a junction tree",
        ),
    )

    def __init__(
        self,
        prior: Any = None,
        *,
        edge_weights: EdgeWeights | NDArray[Any] | Callable[..., Any] = "full",
        templates: Mapping[str, Any] | None = None,
        labels: Any = None,
        solver: FieldSolver | Registered = "auto",
        inference: GraphMethod | Registered = "auto",
        max_cells: int = 2**19,
        max_iter: int = 1000,
        tolerance: float = 1e-5,
        step_size: Any = None,
        decay: float = 0.0,
        batch_size: int = 1,
        average: bool = False,
        shuffle: bool = True,
        expectations: Expectations = "auto",
        n_samples: int = 10,
        n_sweeps: int = 10,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = 0,
        threads: int | None = None,
        memory_limit: Any = None,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        options = self._options
        check_options(options)

    def _task(self) -> GraphCRFTask:
        return GraphCRFTask(self._options)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        group: Hashable | None = None,
        node: Hashable | None = None,
        neighbours: Hashable | None = None,
        columns: Any = None,
        validation: tuple[Any, Any] | None = None,
    ) -> Self:
        """Learn the weights from graphs, or from a table of nodes where it is.

        Args:
            X: a list of `GraphExample`, or a table with a row for each node.
            y: the labels of each example; of a table, the name of the column that holds them, or in memory the labels
                of its rows.
            sample_weight: how many examples each example stands for (n,); of a table, the column that holds it. Those
                of weight 0 are left out.
            group: the column of a table that tells its graphs apart.
            node: the column that names the nodes of a graph; they are numbered in its order.
            neighbours: the column with the list of the nodes that a node is joined to; two nodes that name each other
                have one edge, from the first of them.
            columns: the columns of features, which are numbers; by default all others.
            validation: examples and labels (X, y); the fit ends when their log-likelihood no longer rises.

        Returns:
            self
        """
        form = {"group": group, "node": node, "neighbours": neighbours, "columns": columns}
        return self._learn(self._inputs(X, y, sample_weight, form, validation))

    # -- weights -----------------------------------------------------------------------------------------------------

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

    def log_partition(self, example: GraphExample) -> float:
        """Log Z of one example: the log of the sum over all labels of exp(score), natural logarithm.

        Of a graph too wide for exact inference it is Bethe's approximation, and a warning says so.
        """
        return float(self.log_partitions([example])[0])

    def log_partitions(self, X: Iterable[Any]) -> Floats:
        """Log Z of each example (n,)."""
        decoder = self._decoder()
        return decoder.log_partitions(decoder.read(X))

    def _decoder(self) -> GraphDecoder:
        fitted: GraphCRFFitted = self.fitted_
        return fitted.decoder(self._task().engine, self._options["random_state"])

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, parameters, summary and report as plain data; functions as the numbers they gave in the fit."""
        plain = super().to_dict()
        options = plain["options"]
        forms = {EDGES: options["edge_weights"], **(options["templates"] or {})}
        if any(callable(form) for form in forms.values()):
            if plain["fitted"] is None:
                raise OptionError("A GraphCRF with a function as a template cannot be saved before the fit.")
            forms = {name: self.fitted_.tabulated().get(name, form) for name, form in forms.items()}
        options["edge_weights"] = forms.pop(EDGES)
        options["templates"] = forms or None
        return plain

    @classmethod
    def _fitted_from(cls, plain: Mapping[str, Any]) -> GraphCRFFitted:
        return GraphCRFFitted.from_dict(plain)
