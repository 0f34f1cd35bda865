"""Questions to a fitted Bayesian network: queries, predictions, samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.engines.memory import in_words
from suffice.errors import OptionError, SizeError, listing
from suffice.models.bayesian.queries.plain import is_plain, plain_inference
from suffice.models.evidence import BY_SAMPLES, MOST_CELLS, RowLaws, check_possible, read_evidence
from suffice.table import Table

if TYPE_CHECKING:
    from suffice.models.bayesian.nodes.contract import Columns
    from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
    from suffice.models.bayesian.size_report import SizeReport

Floats = NDArray[np.float64]

ENGINES = ("exact", "sampling")


class NetworkAnswers:
    """What a fitted network answers; the network itself gives the structure and the fitted nodes."""

    _parents: dict[Hashable, tuple[Hashable, ...]]

    @property
    def _hidden(self) -> dict[Hashable, Variable]:
        """The variables that are never observed."""
        raise NotImplementedError

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """The nodes, in the order in which the structure names them."""
        return tuple(self._parents)

    def _nodes(self) -> dict[Hashable, Any]:
        """The fitted nodes by name."""
        raise NotImplementedError

    def node(self, node: Hashable) -> Any:
        """The fitted node."""
        raise NotImplementedError

    def states(self, node: Hashable) -> tuple[Hashable, ...]:
        """The states of a node."""
        raise NotImplementedError

    def _infer(self) -> Any:
        """The exact way for these nodes: a junction tree, one normal law, or both together."""
        nodes = self._nodes()  # First: nodes that were given anew leave no inference behind.
        if "_inference" not in self.__dict__:
            self._inference: Any = inference_of(nodes)
        return self._inference

    # -- one question ------------------------------------------------------------------------------------------------

    def query(
        self,
        variables: Any,
        given: Mapping[Any, Any] | None = None,
        *,
        engine: str = "exact",
        n: int = 10_000,
        random_state: Any = None,
    ) -> Any:
        """P(variables | given).

        Args:
            variables: one node or a list of nodes.
            given: states and values by node; a dict or array of likelihoods by state is soft evidence.
            engine: ``"exact"``, or ``"sampling"`` for networks that the exact engines do not take or that are too
                large: likelihood weighting, whose answers carry standard errors and an effective sample size.
            n: number of weighted samples.
            random_state: seed of the samples.

        Returns:
            A `Table` of discrete nodes, axes in the order asked. Of real nodes a normal law (where all nodes are
            linear-Gaussian) or a mixture of normal laws; of both a table with a mixture in each cell.
        """
        if engine not in ENGINES:
            raise OptionError(f"engine is {engine!r}; expected one of {listing(ENGINES)}.")
        if engine == "sampling":
            from suffice.models.bayesian.queries.sampled import SampledInference

            return SampledInference(self._nodes()).query(variables, given, n=n, random_state=random_state)
        with _offering_samples():
            return self._infer().query(variables, given)

    def joint_marginal(self, variables: Sequence[Hashable]) -> Any:
        """P(variables), axes in the order asked."""
        return self.query(list(variables))

    def marginals(self, given: Mapping[Any, Any] | None = None) -> dict[Hashable, Any]:
        """P(variable | given) of every variable, from one calibration."""
        with _offering_samples():
            return dict(self._infer().marginals(given))

    def most_probable(
        self, given: Mapping[Any, Any] | None = None, *, variables: Any = None
    ) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence; of a linear-Gaussian network the mode.

        With `variables` that of some nodes only, the others summed out: from their joint table, or an error where that
        would be too large.
        """
        infer = self._infer()
        if variables is None:
            return dict(infer.most_probable(given))
        names = infer.domain.names_of(variables)
        real = [name for name in names if infer.domain[name].kind != "discrete"]
        if real and infer.kind != "normal":
            raise OptionError(f"{listing(real)} is real: the most probable state is that of discrete variables.")
        if real:
            law = infer.query(names, given)
            return dict(zip(names, law.mean.tolist(), strict=True))
        _check_cells(infer.domain.select(names), "Their joint table")
        table: Table = self.query(names, given)
        best = np.unravel_index(int(table.values.argmax()), table.values.shape)
        return {name: infer.domain[name].states[code] for name, code in zip(names, best, strict=True)}

    def log_probability(self, given: Mapping[Any, Any] | None = None) -> float:
        """Log-probability (density) of evidence; -inf where it is impossible."""
        with _offering_samples():
            return float(self._infer().log_probability(given))

    # -- the whole law -----------------------------------------------------------------------------------------------

    def joint_gaussian(self, given: Mapping[Any, Any] | None = None) -> JointGaussian:
        """The joint normal law of a linear-Gaussian network: mean, covariance, precision, information form.

        With evidence, the law of the other nodes.
        """
        infer = self._infer()
        if infer.kind != "normal":
            others = [name for name, node in self._nodes().items() if not node.linear]
            raise OptionError(
                f"The nodes {listing(others)} are not linear-Gaussian, so the network is no joint normal law. query "
                "gives tables, and mixtures of normal laws."
            )
        joint: JointGaussian = infer.joint
        return joint.condition(read_evidence(infer.domain, given).values) if given else joint

    def to_joint(self) -> Table:
        """P(all nodes) as one table, axes in the order of `nodes`; too many cells are an error before any work."""
        infer = self._infer()
        if infer.kind != "tables":
            real = [v.name for v in infer.domain.variables if v.kind != "discrete"]
            raise OptionError(f"{listing(real)} are real, so there is no joint table. See joint_gaussian and query.")
        _check_cells(infer.domain, "The joint table")
        found = Table(Domain(), np.ones(()))
        for node in self._nodes().values():
            found = found * node.table_
        return found.transpose(infer.domain.names)

    def size_report(self, data: Any = None, *, columns: Any = None) -> SizeReport:
        """Cells and bytes of every node and of the junction tree, before or after fitting.

        Cards come from declared states, from `data`, or from the fitted nodes. With data, or after a fit, the report
        also says how many parent configurations occur.
        """
        from suffice.models.bayesian.size_report import size_report

        return size_report(self, data, columns)

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(self, data: Any, *, columns: Any = None, threads: int | None = None) -> Floats:
        """Log-probability of each row; gaps and absent columns are summed out. Equal rows are worked on once.

        `score` is its weighted mean. Columns of the names of hidden nodes are not read, as in `fit`. The result does
        not depend on the number of threads; None is one for each core.
        """
        infer = self._infer()
        seen = Domain(variable for variable in infer.domain.variables if variable.name not in self._hidden)

        def work(found: Columns, n: int) -> RowLaws:
            return infer.log_likelihood(found, n, threads=threads), np.ones(n, dtype=bool)

        return _over_batches(work, data, seen, columns, ())

    def predict_proba(self, data: Any, target: Hashable, *, columns: Any = None, threads: int | None = None) -> Floats:
        """P(target | the other columns) of each row (n, card), states in the order of `states(target)`."""
        if self._infer().domain[target].kind != "discrete":
            raise OptionError(f"{target!r} is real and has no table of probabilities; predict gives its mean.")
        return self._predicted(data, target, columns, threads)

    def _predicted(self, data: Any, target: Hashable, columns: Any, threads: int | None) -> Floats:
        infer = self._infer()
        others = Domain(variable for variable in infer.domain.variables if variable.name != target)

        def work(found: Columns, n: int) -> RowLaws:
            laws: RowLaws = infer.predict_rows(found, n, target, threads=threads)
            return laws

        variable = infer.domain[target]
        shape = (variable.card,) if variable.kind == "discrete" else ()
        return _over_batches(work, data, others, columns, shape, nodes=infer.domain)

    def predict(self, data: Any, target: Hashable, *, columns: Any = None, threads: int | None = None) -> NDArray[Any]:
        """The most probable state of the target given the other columns, or the mean of a real one, for each row."""
        found = self._predicted(data, target, columns, threads)
        if self._infer().domain[target].kind != "discrete":
            return found
        return self._labels(target, found.argmax(axis=1))

    def query_rows(self, variables: Any, data: Any, *, columns: Any = None, threads: int | None = None) -> Floats:
        """P(variables | row) for each row of evidence (n, cards...), axes in the order asked.

        Every column that is a node is evidence, also those that are asked for; gaps are no evidence.
        """
        infer = self._infer()
        names = infer.domain.names_of(variables)
        real = [name for name in names if infer.domain[name].kind != "discrete"]
        if real:
            raise OptionError(f"{listing(real)} is real and has no table of probabilities; predict gives its mean.")

        def work(found: Columns, n: int) -> RowLaws:
            laws: RowLaws = infer.laws_of_rows(found, n, names, threads=threads)
            return laws

        return _over_batches(work, data, infer.domain, columns, infer.domain.shape(names))

    # -- samples -----------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: int = 1,
        given: Mapping[Any, Any] | None = None,
        *,
        missing: Any = None,
        random_state: Any = None,
    ) -> dict[Hashable, NDArray[Any]]:
        """`n` rows, as columns of states and numbers by node; with evidence from the exact posterior.

        `missing` makes gaps completely at random, for testing: the share of missing cells, or a dict of shares by
        node. A gap is None among states and NaN among numbers. `fit` takes the columns as they are.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
            raise OptionError(f"n is {n!r}; expected a whole number of rows of at least 0; it must not be negative.")
        from suffice.families.base import generator
        from suffice.graphs.directed import topological_order
        from suffice.models.bayesian.gaps_in_samples import gap_rates, with_gaps

        rng = generator(random_state)
        domain = Domain(node.domain[name] for name, node in self._nodes().items())
        rates = None if missing is None else gap_rates(missing, domain)
        if given:
            with _offering_samples():
                columns = self._infer().sample_given(given, n, rng)
        else:
            columns = {}
            for name in topological_order(self._parents):
                columns[name] = self.node(name).sample(columns, rng, n)
        found = {name: self._labels(name, columns[name]) for name in self.nodes}
        return found if rates is None else with_gaps(found, rates, domain, rng)

    def _labels(self, name: Hashable, codes: NDArray[Any]) -> NDArray[Any]:
        if self.node(name).domain[name].kind != "discrete":
            return codes.astype(np.int64) if getattr(self._nodes()[name], "whole", False) else codes
        states = self.states(name)
        kinds = {type(state) for state in states}
        if len(kinds) == 1 and kinds <= {int, float, bool}:
            return np.asarray(np.array(states)[codes])
        labels = np.empty(len(states), dtype=object)
        labels[:] = states
        return np.asarray(labels[codes])


def inference_of(nodes: dict[Hashable, Any]) -> Any:
    """Exact inference for some fitted nodes; its engine loads with the first question."""
    if all(map(is_plain, nodes.values())):
        return plain_inference(nodes)
    from suffice.models.bayesian.queries.rewritten import RewrittenInference

    return RewrittenInference(nodes)


def _over_batches(
    work: Callable[[Columns, int], RowLaws],
    data: Any,
    domain: Domain,
    columns: Any,
    shape: tuple[int, ...],
    *,
    nodes: Domain | None = None,
) -> Floats:
    """The answers (n, *shape) of all batches of rows, one after the other; impossible rows are an error."""
    from suffice.models.bayesian.queries.tables import coded_columns

    with _offering_samples():
        parts = [work(found, n) for found, n in coded_columns(data, domain, columns, nodes)]
    if not parts:
        return np.empty((0, *shape))
    check_possible(np.concatenate([possible for _, possible in parts]))
    return np.concatenate([laws for laws, _ in parts])


def _check_cells(domain: Domain, what: str) -> None:
    cells = 1
    for variable in domain.variables:
        cells *= variable.card
    if cells > MOST_CELLS:
        raise SizeError(
            f"{what} of {listing(domain.names)} has {cells:,} cells ({in_words(8 * cells)}); the limit is "
            f"{MOST_CELLS:,} cells ({in_words(8 * MOST_CELLS)}). Ask for fewer variables."
        )


@contextmanager
def _offering_samples() -> Iterator[None]:
    """Where exact inference would be too large, say how to ask approximately."""
    try:
        yield
    except SizeError as error:
        raise SizeError(f"{error} {BY_SAMPLES}") from None
