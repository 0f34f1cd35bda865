"""What a Bayesian network learns: its nodes; and what they answer together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import draw_count, no_seed, text
from suffice.choices import QueryEngine, Registered, choices
from suffice.domain import Domain, Variable
from suffice.engines.memory import in_words
from suffice.errors import FileFormatError, NotFittedError, OptionError, SizeError, listing
from suffice.models.bayesian.queries.exact import exact_inference
from suffice.models.bayesian.structure import Parents
from suffice.models.evidence import BY_SAMPLES, MOST_CELLS, Names, check_possible, checked_given, read_evidence
from suffice.records import record
from suffice.table import Table

# What learning needs is loaded by the first fit: a network that is read from a file may never have one.
if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.models.bayesian.learning import NodeLearning
    from suffice.models.bayesian.queries.joint_gaussian import JointGaussian
    from suffice.models.row_answers import RowQuestion
    from suffice.statistics import Summary


ENGINES = choices(QueryEngine)
#: Weighted samples of an answer, unless said.
SAMPLES = 10_000


@record(frozen=True, eq=False)
class NetworkFitted:
    """P(x) = product over nodes of P(node | parents): the fitted nodes by name, in the order of the structure.

    `hidden` are those that are never observed, and `leading` those with parameters of their own: neither fixed, nor
    tied to another one before them. Where EM was run, `scores` are the objectives that its runs reached, -inf for one
    that failed, and `expectations` how often all of them expected statistics.
    """

    nodes: Mapping[Hashable, Any]
    hidden: tuple[Hashable, ...] = ()
    leading: tuple[Hashable, ...] = ()
    scores: tuple[float, ...] = ()
    expectations: int = 0

    title: ClassVar[str] = "BayesianNetwork"

    @property
    def n_params(self) -> int:
        """Free parameters of all nodes that are not fixed; those that tied nodes share count once."""
        return sum([self.nodes[name].n_params for name in self.leading])

    @property
    def climbed(self) -> NetworkFitted:
        """Itself, where EM was run."""
        if not self.scores:
            raise NotFittedError("The last fit of this BayesianNetwork has made no runs of EM.")
        return self

    @cached_property
    def parents(self) -> Parents:
        """The parents of each node, in declared order."""
        return {name: node.domain.names[:-1] for name, node in self.nodes.items()}

    @cached_property
    def domain(self) -> Domain:
        """The nodes as variables."""
        return Domain(node.domain[name] for name, node in self.nodes.items())

    def variable(self, node: Hashable) -> Variable:
        """A node as a variable, whose states are those of the network, in their order."""
        variable: Variable = self.nodes[node].domain[node]
        return Variable.discrete(node, variable.states) if variable.kind == "discrete" else variable

    @cached_property
    def observed_domain(self) -> Domain:
        """The nodes that are not hidden, as variables."""
        return Domain(self.variable(name) for name in self.nodes if name not in self.hidden)

    def table(self, node: Hashable) -> Table:
        """P(node | parents) with axes (parents in declared order, node)."""
        table: Table = self.nodes[node].table_
        return table

    @cached_property
    def inference(self) -> Any:
        """The exact way for these nodes; its engine loads with the first question."""
        nodes = dict(self.nodes)
        if all(node.is_exact for node in nodes.values()):
            return exact_inference(nodes)
        from suffice.models.bayesian.queries.evidence_reduction import ReducedInference

        return ReducedInference(nodes)

    # -- interventions -----------------------------------------------------------------------------------------------

    @cached_property
    def mutilated(self) -> dict[Any, NetworkFitted]:
        """The last networks in which nodes were set, see `under`."""
        return {}

    def under(
        self, do: Mapping[Any, Any] | None, given: Mapping[Any, Any] | None = None
    ) -> tuple[NetworkFitted, Mapping[Any, Any] | None]:
        """The network in which some nodes are set from outside, and the evidence with their values."""
        if do is None:
            return self, checked_given(given)
        from suffice.models.bayesian.intervention import mutilated, read_intervention

        fixed = read_intervention(self.domain, do, given)
        return mutilated(self, fixed), {**(given or {}), **do}

    # -- one question ------------------------------------------------------------------------------------------------

    def query(
        self,
        variables: Names,
        given: Mapping[Any, Any] | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        engine: QueryEngine | Registered = "exact",
        n: int | None = None,
        random_state: Any = None,
    ) -> Any:
        """P(variables | given), or under an intervention P(variables | given, do).

        Args:
            variables: one name or a list of them.
            given: states and values by node; a dict or array of likelihoods by state is soft evidence.
            do: states and values of nodes that are set from outside, so that their parents no longer matter.
            engine: ``"exact"``, or ``"sampling"`` for networks that the exact engines do not take or that are too
                large: likelihood weighting, whose answers carry standard errors and an effective sample size; or
                the name of a registered engine, such as ``"enumeration"`` (`extend.register_engine`).
            n: number of weighted samples of ``engine="sampling"``; 10,000 by default.
            random_state: seed of the samples.

        Returns:
            A `Table` of discrete nodes, axes in the order asked. Of real nodes a normal distribution (where all nodes
            are linear-Gaussian) or a mixture of normal ones; of both a table with a mixture in each cell.
        """
        if text(engine, "engine") != "sampling" and n is not None:
            raise OptionError(
                f"n= is the number of samples of engine='sampling' and has no effect with engine={engine!r}. Leave it "
                "out, or give engine='sampling'."
            )
        if engine != "sampling":
            no_seed(random_state)
        asked, known = self.under(do, given)
        if engine not in ENGINES:
            from suffice.engines.registry import named

            planner = named(engine, ENGINES)
            if asked.inference.kind != "tables":
                raise OptionError(f"engine={engine!r} takes networks of tables; use one of {listing(ENGINES)}.")
            return asked.inference.query_by(planner, variables, known)
        if engine == "sampling":
            from suffice.models.bayesian.queries.sampled import SampledInference

            return SampledInference(asked.nodes).query(
                variables, known, n=SAMPLES if n is None else n, random_state=random_state
            )
        with _offering_samples():
            return asked.inference.query(variables, known)

    def marginals(
        self,
        given: Any = None,
        *,
        do: Mapping[Any, Any] | None = None,
        columns: Any = None,
        threads: int | None = None,
    ) -> dict[Hashable, Any]:
        """P(variable | given) of every variable, from one calibration; or of every row of evidence, from one call.

        Args:
            given: a dict of states and values by node is one question; a frame, a file or an array is many of them, one
                a row, whose missing values are no evidence.
            do: states and values of nodes that are set from outside, for one question.
            columns: for an array, the names of its columns.
            threads: for rows; None is one for each core. It changes no digit.

        Returns:
            For one question a `Table` of each discrete node (of a real one its distribution), for rows an array
            (n, card) of each node, states in the order of `states(node)`.
        """
        if given is not None and not isinstance(given, Mapping):
            if do is not None:
                raise OptionError("do= is for one question, and given is many rows: see query_rows(..., do=...).")
            return self._marginals_of_rows(given, columns, threads)
        if columns is not None or threads is not None:
            raise OptionError(
                "columns= and threads= are for many rows of evidence, and given is one question: a dict of states by "
                "node. Give a frame, or an array with columns=."
            )
        asked, known = self.under(do, given)
        with _offering_samples():
            return dict(asked.inference.marginals(known))

    def _marginals_of_rows(self, rows: Any, columns: Any, threads: int | None) -> dict[Hashable, Floats]:
        from suffice.models.row_answers import coded_columns

        infer = self.inference
        real = [variable.name for variable in infer.domain.variables if variable.kind != "discrete"]
        if real:
            raise OptionError(
                f"{listing(real)} is real and has no table of probabilities. Call query_rows for the discrete nodes, "
                "and predict for the mean of a real one."
            )
        with _offering_samples():
            parts = [
                infer.marginals_of_rows(codes, n, threads=threads)
                for codes, n in coded_columns(rows, infer.domain, columns)
            ]
        if not parts:
            return {name: np.empty((0, *infer.domain.shape([name]))) for name in infer.domain.names}
        check_possible(np.concatenate([possible for _, possible in parts]))
        return {name: np.concatenate([marginals[name] for marginals, _ in parts]) for name in infer.domain.names}

    def map_query(
        self,
        given: Mapping[Any, Any] | None = None,
        *,
        variables: Names | None = None,
        do: Mapping[Any, Any] | None = None,
    ) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence; of a linear-Gaussian network the mode.

        With `variables` that of some nodes only, the others summed out: from their joint table, or an error where that
        would be too large. With `do` some nodes are set from outside.
        """
        asked, given = self.under(do, given)
        infer = asked.inference
        if variables is None:
            return dict(infer.map_query(given))
        names = infer.domain.names_of(variables)
        real = [name for name in names if infer.domain[name].kind != "discrete"]
        if real and infer.kind != "normal":
            raise OptionError(f"{listing(real)} is real: the most probable state is that of discrete variables.")
        if real:
            normal = infer.query(names, given)
            return dict(zip(names, normal.mean.tolist(), strict=True))
        _check_cells(infer.domain.select(names), "Their joint table")
        with _offering_samples():
            table: Table = infer.query(names, given)
        best = np.unravel_index(int(table.values.argmax()), table.values.shape)
        return {name: infer.domain[name].states[code] for name, code in zip(names, best, strict=True)}

    def log_probability(self, given: Mapping[Any, Any] | None = None, *, do: Mapping[Any, Any] | None = None) -> float:
        """Log-probability (density) of evidence, with `do` when nodes are set from outside; -inf if impossible."""
        asked, known = self.under(do, given)
        with _offering_samples():
            value = float(asked.inference.log_probability(known))
            # Nodes that are set are roots: what stands for their distribution is divided out.
            return value if do is None else value - float(asked.inference.log_probability(do))

    # -- the whole distribution --------------------------------------------------------------------------------------

    def joint_gaussian(
        self, given: Mapping[Any, Any] | None = None, *, do: Mapping[Any, Any] | None = None
    ) -> JointGaussian:
        """The joint normal distribution of a linear-Gaussian network: mean, covariance, precision, information form.

        With evidence, or where `do` sets nodes from outside, the distribution of the other nodes.
        """
        asked, given = self.under(do, given)
        infer = asked.inference
        if infer.kind != "normal":
            others = [name for name, node in self.nodes.items() if not node.linear]
            raise OptionError(
                f"The nodes {listing(others)} are not linear-Gaussian, so the network is no joint normal distribution. "
                "query gives tables, and mixtures of normal distributions."
            )
        joint: JointGaussian = infer.joint
        return joint.condition(read_evidence(infer.domain, given).values) if given else joint

    def to_joint(self) -> Table:
        """P(all nodes) as one table, axes in the order of `nodes`; too many cells are an error before any work."""
        infer = self.inference
        if infer.kind != "tables":
            real = [v.name for v in infer.domain.variables if v.kind != "discrete"]
            raise OptionError(f"{listing(real)} are real, so there is no joint table. See joint_gaussian and query.")
        _check_cells(infer.domain, "The joint table")
        joint = Table(Domain(), np.ones(()))
        for node in self.nodes.values():
            joint = joint * node.table_
        return joint.transpose(infer.domain.names)

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(self, summary: Summary) -> float:
        """Sum over the rows of a summary, natural logarithm; missing values and absent columns are summed out."""
        from suffice.models.bayesian.node_scores import NodeScores
        from suffice.models.em.rows import has_missing, read_rows

        if not has_missing(summary):
            return float(sum(NodeScores([(node, summary) for node in self.nodes.values()]).log_likelihoods()))
        rows = read_rows(summary, summary.domain)
        # The digits of a report do not depend on earlier work of the process.
        return float(rows.weights @ self.inference.log_likelihood(rows.columns, len(rows.weights), calls=1))

    def score_samples(self, data: Any, *, columns: Any = None, threads: int | None = None) -> Floats:
        """Log-probability of each row (n,); missing values and absent columns are summed out.

        `score` is its weighted mean. Equal rows are worked on once. Columns of the names of hidden nodes are not read,
        as in `fit`. The result does not depend on the number of threads; None is one for each core. Of a Dask or Spark
        frame a frame with the column "log_probability"; not computed yet.
        """
        from suffice.models.row_answers import RowProbability

        seen = Domain(variable for variable in self.domain.variables if variable.name not in self.hidden)
        scores: Floats = _answered(RowProbability(self, threads), data, seen, columns)
        return scores

    def predict_proba(self, data: Any, target: Hashable, *, columns: Any = None, threads: int | None = None) -> Floats:
        """P(target | the other columns) of each row (n, card), states in the order of `states(target)`.

        Of a Dask or Spark frame a frame with a column for each state; not computed yet.
        """
        if self.inference.domain[target].kind != "discrete":
            raise OptionError(
                f"{target!r} is real and has no table of probabilities. Call predict, which gives its mean."
            )
        shares: Floats = self._predicted(data, target, columns, threads, labels=False)
        return shares

    def predict(self, data: Any, target: Hashable, *, columns: Any = None, threads: int | None = None) -> NDArray[Any]:
        """The most probable state of the target given the other columns, or the mean of a real one, for each row (n,).

        Of a Dask or Spark frame a frame with the column "prediction"; not computed yet.
        """
        labels: NDArray[Any] = self._predicted(data, target, columns, threads, labels=True)
        return labels

    def _predicted(self, rows: Any, target: Hashable, columns: Any, threads: int | None, *, labels: bool) -> Any:
        from suffice.models.row_answers import RowPrediction

        self.inference.domain.names_of(target)
        others = Domain(variable for variable in self.inference.domain.variables if variable.name != target)
        return _answered(RowPrediction(self, threads, target, labels), rows, others, columns, self.inference.domain)

    def query_rows(
        self,
        variables: Names,
        data: Any,
        *,
        do: Mapping[Any, Any] | None = None,
        columns: Any = None,
        threads: int | None = None,
    ) -> Floats:
        """P(variables | row) for each row of evidence (n, cards...), axes in the order asked.

        Every column that is a node is evidence, also those that are asked for; missing values are no evidence. With
        `do` some nodes are set from outside, the same in all rows; a column of theirs is an error.
        """
        asked = self.under(do)[0]
        infer = asked.inference
        names = infer.domain.names_of(variables)
        real = [name for name in names if infer.domain[name].kind != "discrete"]
        if real:
            raise OptionError(
                f"{listing(real)} is real and has no table of probabilities. Call predict, which gives its mean."
            )

        from suffice.models.bayesian.queries.rows import RowQuery

        question = RowQuery(asked, threads, tuple(names), {} if do is None else read_evidence(infer.domain, do).known)
        tables: Floats = _answered(question, data, infer.domain, columns)
        return tables

    # -- samples -----------------------------------------------------------------------------------------------------

    def sample(
        self,
        n: int = 1,
        given: Mapping[Any, Any] | None = None,
        *,
        do: Mapping[Any, Any] | None = None,
        missing: Any = None,
        random_state: Any = None,
    ) -> dict[Hashable, NDArray[Any]]:
        """`n` rows, as columns of states and numbers by node; with evidence from the exact posterior.

        `do` sets nodes from outside: they have these values in all rows, whatever their parents are.

        A model that was fitted to a frame of pandas, polars or pyarrow gives such a frame, any other, and one that was
        read from a file, a dict of arrays.

        `missing` takes values away completely at random, for testing: the share of missing cells, or a dict of shares
        by node. They are None among states and NaN among numbers. `fit` takes the columns as they are.
        """
        draw_count(n)
        from suffice.families.base import generator
        from suffice.graphs.directed import topological_order
        from suffice.models.bayesian.missing import missing_rates, with_missing

        rng = generator(random_state)
        rates = None if missing is None else missing_rates(missing, self.domain)
        asked, known = self.under(do, given)
        if given is not None and len(read_evidence(self.domain, given).names):
            with _offering_samples():
                columns = asked.inference.sample_given(known, n, rng)
        else:
            fixed = read_evidence(self.domain, do)
            columns = {name: np.full(n, code, dtype=np.int32) for name, code in fixed.states.items()}
            columns |= {name: np.full(n, value) for name, value in fixed.values.items()}
            for name in topological_order(asked.parents):
                if name not in columns:
                    columns[name] = self.nodes[name].sample(columns, rng, n)
        labels = {name: self.labels_of(name, columns[name]) for name in self.nodes}
        return labels if rates is None else with_missing(labels, rates, self.domain, rng)

    def labels_of(self, name: Hashable, codes: NDArray[Any]) -> NDArray[Any]:
        """States by their labels, counts as whole numbers, other numbers as they are."""
        node = self.nodes[name]
        if node.domain[name].kind != "discrete":
            return codes.astype(np.int64) if node.whole else codes
        states = node.domain[name].states
        kinds = {type(state) for state in states}
        if len(kinds) == 1 and kinds <= {int, float, bool}:
            return np.asarray(np.array(states)[codes])
        labels = np.empty(len(states), dtype=object)
        labels[:] = states
        return np.asarray(labels[codes])

    def portrait(self) -> Portrait:
        """What there is to see of it."""
        from suffice.models.bayesian.portrait import portrait_of

        return portrait_of(self)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a file; the structure is an option."""
        return {"nodes": [node.to_dict() for node in self.nodes.values()]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], learning: NodeLearning) -> NetworkFitted:
        """Rebuild from plain data, checking that it belongs to the structure and its tied nodes."""
        from suffice.models.bayesian.nodes.kinds import read_node

        read = [read_node(each) for each in plain["nodes"]]
        fitted = cls({node.name: node for node in read}, tuple(learning.hidden), learning.leading)
        if fitted.parents != learning.parents:
            raise FileFormatError("The tables do not belong to the structure of the network.")
        for first, *others in learning.groups:
            shared = fitted.nodes[first].parameters()
            if not all(np.array_equal(shared, fitted.nodes[n].parameters(), equal_nan=True) for n in others):
                raise FileFormatError(f"{listing([first, *others])} are tied, and their parameters differ.")
        return fitted


def _answered(question: RowQuestion, data: Any, domain: Domain, columns: Any, nodes: Domain | None = None) -> Any:
    """The answers to all rows; where they would be too large, how to ask approximately."""
    from suffice.models.row_answers import answers_of_rows

    with _offering_samples():
        return answers_of_rows(question, data, domain, columns, nodes)


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
