"""Exact inference in networks with discrete and real nodes: tables and linear-Gaussian nodes together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.domain import Domain
from suffice.engines.conditional_gaussian import ConditionalGaussian, MixedPosterior
from suffice.engines.conditional_gaussian_rows import RowGroup, log_evidence, solve_rows
from suffice.engines.mixed_network import Discrete, MixedNetwork, NodeRegression
from suffice.engines.workers import worker_count
from suffice.errors import DataError, EstimateError, OptionError, SizeError, listing
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.queries.mixed_distribution import MixedDistribution
from suffice.models.bayesian.queries.observed_families import without_observed
from suffice.models.bayesian.queries.tables import log_prob_of_whole_rows
from suffice.models.evidence import BY_SAMPLES, Names, RowDistributions, read_evidence
from suffice.table import Table

#: Rows worked on at a time: each has numbers for every joint state of the discrete variables that real ones depend on.
STEP = 2**14


class MixedInference:
    """Questions to a fitted network that has discrete and real nodes."""

    kind = "mixed"
    plan = None

    def __init__(self, nodes: Mapping[Hashable, Any]) -> None:
        """Take the fitted nodes."""
        self.nodes = dict(nodes)
        self.domain = Domain(node.domain[name] for name, node in self.nodes.items())

    def _discrete(self, name: Hashable) -> bool:
        return self.domain[name].kind == "discrete"

    @cached_property
    def engine(self) -> ConditionalGaussian:
        """Tables and regressions as the engine takes them; other networks are an error that says what to do."""
        for name, node in self.nodes.items():
            real = [parent for parent in node.domain.names[:-1] if not self._discrete(parent)]
            if self._discrete(name) and real:
                raise OptionError(
                    f"{name!r} is discrete and has the real parents {listing(real)}: its distribution given evidence "
                    f"has no closed form, so exact inference does not take it. {BY_SAMPLES}"
                )
            if not self._discrete(name) and not node.linear:
                raise OptionError(
                    f"{name!r} is a node of kind {node.kind!r}; exact inference takes linear-Gaussian nodes as real "
                    f"nodes. {BY_SAMPLES}"
                )
        tables = {n: Discrete(v.parents, v.table_.values) for n, v in self.nodes.items() if self._discrete(n)}
        regressions = {
            name: NodeRegression(node.discrete_parents, node.real_parents, node.weights_, node.variance_)
            for name, node in self.nodes.items()
            if node.linear
        }
        numbers: dict[Hashable, Any] = {name: node.table for name, node in tables.items()}
        numbers |= {name: node.variance for name, node in regressions.items()}
        undefined = [name for name, array in numbers.items() if np.isnan(array).any()]
        if undefined:
            raise EstimateError(
                f"The tables of {listing(undefined)} have undefined rows (unseen='nan'). Use a prior= or "
                "unseen='uniform'."
            )
        return ConditionalGaussian(MixedNetwork(tables, regressions))

    # -- one question ------------------------------------------------------------------------------------------------

    def _posterior(self, given: Mapping[Any, Any] | None) -> MixedPosterior:
        evidence = read_evidence(self.domain, given)
        return self.engine.condition(evidence.known, evidence.likelihoods)

    def query(self, variables: Names, given: Mapping[Any, Any] | None) -> Any:
        """A table of discrete variables, a mixture of normal distributions of real ones, or a `MixedDistribution`."""
        names, posterior = self.domain.names_of(variables), self._posterior(given)
        with _possible(given):
            return self._distribution(posterior, names)

    def _distribution(self, posterior: MixedPosterior, names: Sequence[Hashable]) -> Any:
        discrete = [name for name in names if self._discrete(name)]
        reals = [name for name in names if not self._discrete(name)]
        if not reals:
            # Sums of shares may exceed 1 by rounding.
            return Table(self.domain.select(names), np.minimum(posterior.table(names), 1.0))
        if not discrete:
            return posterior.mixture(names)
        return MixedDistribution(self.domain.select(discrete), *posterior.mixture_by(discrete, reals))

    def marginals(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Any]:
        """The distribution of every variable given the evidence, the observed ones left out where they are real."""
        known = read_evidence(self.domain, given).values
        asked = [v.name for v in self.domain.variables if v.kind == "discrete" or v.name not in known]
        posterior = self._posterior(given)
        with _possible(given):
            return {name: self._distribution(posterior, [name]) for name in asked}

    def map_query(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """Not defined: densities and probabilities do not compare."""
        raise OptionError(
            "The most probable joint state is defined for networks of tables and for linear-Gaussian networks; this "
            "one has both kinds of nodes. Name discrete variables: map_query(given, variables=[...])."
        )

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log probability of states times density of values; -inf where they are impossible."""
        return self._posterior(given).log_evidence

    # -- many rows ---------------------------------------------------------------------------------------------------

    def log_likelihood(
        self, columns: Columns, n: int, *, threads: int | None = None, calls: int | None = None
    ) -> Floats:
        """Log density of each row; missing values and absent columns are summed and integrated out."""
        logs, rows = log_prob_of_whole_rows(self.nodes, columns, n)
        for start in range(0, len(rows) if columns else 0, STEP):
            some = rows[start : start + STEP]
            part = {name: values[some] for name, values in columns.items()}
            try:
                engine = self.engine
            except SizeError:
                if (smaller := without_observed(self.nodes, part, len(some))) is None:
                    raise
                others = MixedInference(smaller[0])
                logs[some] = smaller[1] + others.log_likelihood(part, len(some), threads=threads, calls=calls)
                continue
            logs[some] = log_evidence(engine, part, threads=worker_count(threads), calls=calls)
        return logs

    def predict_rows(
        self, columns: Columns, n: int, target: Hashable, *, threads: int | None = None
    ) -> RowDistributions:
        """P(target | row) (n, card) of a discrete target, or the mean (n,) of a real one."""
        discrete = self._discrete(target)
        known = {name: values for name, values in columns.items() if name != target}
        if discrete:
            return self.distributions_of_rows(known, n, [target], threads=threads)
        if not known:
            return np.full(n, self.query(target, None).mean[0]), np.ones(n, dtype=bool)
        predicted, possible = np.empty(n), np.ones(n, dtype=bool)
        for rows, group in self._groups(known, n, (), [target], threads):
            predicted[rows] = group.means_of(target)
            possible[rows] = group.log_evidence > -np.inf
        return predicted, possible

    def distributions_of_rows(
        self, columns: Columns, n: int, names: Sequence[Hashable], *, threads: int | None = None
    ) -> RowDistributions:
        """P(names | row) of each row (n, cards...), all names discrete."""
        scope = tuple(names)
        if not columns:
            distribution = self.query(list(scope), None).values
            return np.repeat(distribution[None], n, axis=0), np.ones(n, dtype=bool)
        probabilities, possible = np.empty((n, *self.domain.shape(scope))), np.ones(n, dtype=bool)
        for rows, group in self._groups(columns, n, [scope], (), threads):
            probabilities[rows] = group.marginals[scope]
            possible[rows] = group.log_evidence > -np.inf
        return probabilities, possible

    def _groups(
        self,
        columns: Columns,
        n: int,
        scopes: Sequence[tuple[Hashable, ...]],
        targets: Sequence[Hashable],
        threads: int | None,
    ) -> Iterator[tuple[NDArray[np.intp], RowGroup]]:
        """Groups of rows with their numbers, a step of rows at a time."""
        for start in range(0, n, STEP):
            some = {name: values[start : start + STEP] for name, values in columns.items()}
            group: RowGroup
            for group in solve_rows(self.engine, some, scopes=scopes, targets=targets, threads=worker_count(threads)):
                yield start + group.rows, group

    def sample_given(self, given: Mapping[Any, Any], n: int, rng: np.random.Generator) -> dict[Hashable, NDArray[Any]]:
        """`n` rows by node, codes and numbers, from the exact posterior."""
        posterior = self._posterior(given)
        with _possible(given):
            drawn = posterior.sample(n, random_state=rng)
        return {name: drawn[name] for name in self.domain.names}


@contextmanager
def _possible(given: Mapping[Any, Any] | None) -> Iterator[None]:
    """Evidence that has been read, and that the engine finds impossible, is named."""
    try:
        yield
    except DataError:
        raise EstimateError(
            f"The evidence {given!r} has density 0 under the network, so nothing follows from it."
        ) from None
