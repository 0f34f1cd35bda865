"""Questions to a fitted Markov network: marginals, queries, predictions, samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain
from suffice.engines.calibration import Calibration
from suffice.engines.workers import worker_count
from suffice.errors import EstimateError, OptionError
from suffice.families.base import take_states
from suffice.models.bayesian.nodes.contract import Columns
from suffice.models.bayesian.queries.tables import coded_columns
from suffice.models.evidence import check_possible, read_evidence
from suffice.models.markov.law import LawFamily
from suffice.table import Table

Floats = NDArray[np.float64]


class Inference(Protocol):
    """What answers the questions to a network, exactly or by samples."""

    domain: Domain

    def condition(self, given: Mapping[Any, Any] | None) -> Any:
        """The law given evidence."""
        ...

    def table(self, names: tuple[Hashable, ...], given: Mapping[Any, Any] | None, random_state: Any = None) -> Table:
        """P(names | given)."""
        ...

    def tables(self, given: Mapping[Any, Any] | None, random_state: Any = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable."""
        ...

    def most_probable(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The most probable joint state."""
        ...

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log-probability of evidence."""
        ...

    def log_likelihood(self, columns: Columns, n: int, threads: int | None) -> Floats:
        """Log-probability of each row."""
        ...

    def predict_rows(self, columns: Columns, n: int, target: Hashable, threads: int | None) -> Floats:
        """P(target | row) of each row."""
        ...


class MarkovInference:
    """The junction tree of a law, loaded once and asked many times."""

    def __init__(self, family: LawFamily, weights: Floats, log_partition: float) -> None:
        """Load the tree with the potentials at these weights."""
        self.domain = family.model.domain
        self.tree = family.tree(weights)
        self._family, self._weights, self._log_partition = family, weights, log_partition

    def condition(self, given: Mapping[Any, Any] | None) -> Calibration:
        """The law given evidence; impossible evidence is an error."""
        known = read_evidence(self.domain, given)
        found = self.tree.condition(known.states, known.likelihoods)
        if found.log_partition == -np.inf:
            raise EstimateError(
                f"The evidence {given!r} has probability 0 under the network, so nothing follows from it."
            )
        return found

    def table(self, names: tuple[Hashable, ...], given: Mapping[Any, Any] | None, random_state: Any = None) -> Table:
        """P(names | given), axes in that order."""
        return Table(self.domain.select(names), self.condition(given).marginal(names))

    def tables(self, given: Mapping[Any, Any] | None, random_state: Any = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration."""
        found = self.condition(given).marginals()
        return {name: Table(self.domain.select([name]), values) for name, values in found.items()}

    def most_probable(self, given: Mapping[Any, Any] | None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        known = read_evidence(self.domain, given)
        best = self.tree.most_probable(known.states, known.likelihoods)
        return {name: self.domain[name].states[code] for name, code in best.states.items()}

    def log_probability(self, given: Mapping[Any, Any] | None) -> float:
        """Log-probability of the evidence, -inf where it is impossible."""
        known = read_evidence(self.domain, given)
        return self.tree.log_probability(known.states, known.likelihoods)

    def log_likelihood(self, columns: Columns, n: int, threads: int | None) -> Floats:
        """Log-probability of each row of codes, -1 for a gap; absent columns are summed out.

        Whole rows need no tree.
        """
        rows, names = _matrix(columns, n)
        whole = (rows >= 0).all(axis=1) & (len(names) == len(self.domain))
        found = np.empty(n)
        codes = rows[whole][:, [names.index(name) for name in self.domain.names]] if whole.any() else rows[:0]
        if len(codes):
            found[whole] = self._family.log_cells(self._weights, codes, self._log_partition)
        if not whole.all():
            answers = self.tree.solve_rows(rows[~whole], names, threads=worker_count(threads))
            found[~whole] = answers.log_partition - self._log_partition
        return found

    def predict_rows(self, columns: Columns, n: int, target: Hashable, threads: int | None) -> Floats:
        """P(target | row) of each row (n, card); rows of probability 0 are an error that names the first."""
        rows, names = _matrix({name: values for name, values in columns.items() if name != target}, n)
        answers = self.tree.solve_rows(rows, names, scopes=[(target,)], threads=worker_count(threads))
        check_possible(answers.log_partition > -np.inf)
        return answers.marginals[(target,)]


def _matrix(columns: Columns, n: int) -> tuple[NDArray[np.int32], tuple[Hashable, ...]]:
    """Columns of codes as rows (n, d), with their names."""
    names = tuple(columns)
    return np.stack([columns[k] for k in names], axis=1) if names else np.empty((n, 0), np.int32), names


class MarkovAnswers:
    """What a fitted Markov network answers; the network itself gives the law."""

    _domain: Domain

    def _infer(self) -> Inference:
        raise NotImplementedError

    def marginal(self, variables: Any, *, random_state: Any = None) -> Table:
        """P(variables), axes in the order asked; they need not share a clique."""
        return self.query(variables, random_state=random_state)

    def query(self, variables: Any, given: Mapping[Any, Any] | None = None, *, random_state: Any = None) -> Table:
        """P(variables | given), exactly, axes in the order asked.

        `given` holds states; a dict or array of likelihoods by state is soft evidence. After an approximate fit of a
        network that is too large for exact inference the answer is from Gibbs sampling: it has `standard_errors` and an
        `effective_sample_size`, and `random_state` is its seed.
        """
        infer = self._infer()
        return infer.table(tuple(infer.domain.names_of(variables)), given, random_state)

    def marginals(self, given: Mapping[Any, Any] | None = None, *, random_state: Any = None) -> dict[Hashable, Table]:
        """P(variable | given) of every variable, from one calibration, or from the same chains."""
        return self._infer().tables(given, random_state)

    def most_probable(self, given: Mapping[Any, Any] | None = None) -> dict[Hashable, Hashable]:
        """The most probable joint state that agrees with the evidence."""
        return self._infer().most_probable(given)

    def log_probability(self, given: Mapping[Any, Any] | None = None) -> float:
        """Log-probability of evidence; -inf where it is impossible."""
        return self._infer().log_probability(given)

    def log_likelihood(self, data: Any, *, columns: Any = None, threads: int | None = None) -> Floats:
        """Log-probability of each row; gaps and absent columns are summed out."""
        infer = self._infer()

        def work(found: Columns, n: int) -> Floats:
            return infer.log_likelihood(found, n, threads)

        return _over_batches(work, data, infer.domain, columns, ())

    def predict_proba(self, data: Any, target: Hashable, *, columns: Any = None, threads: int | None = None) -> Floats:
        """P(target | the other columns) of each row (n, card), states in the order of `states(target)`."""
        infer = self._infer()
        variable = infer.domain[target]
        others = Domain(other for other in infer.domain.variables if other.name != target)

        def work(found: Columns, n: int) -> Floats:
            return infer.predict_rows(found, n, target, threads)

        return _over_batches(work, data, others, columns, (variable.card,))

    def predict(self, data: Any, target: Hashable, *, columns: Any = None, threads: int | None = None) -> NDArray[Any]:
        """The most probable state of the target given the other columns, for each row."""
        found = self.predict_proba(data, target, columns=columns, threads=threads)
        return take_states(self._infer().domain[target].states, found.argmax(axis=1))

    def sample(
        self, n: int = 1, given: Mapping[Any, Any] | None = None, *, random_state: Any = None
    ) -> dict[Hashable, NDArray[Any]]:
        """`n` independent rows, exactly from the law (or from it given evidence), as columns of states.

        After an approximate fit of a network that is too large for exact inference: one Gibbs chain for each row.
        """
        if n < 0:
            raise OptionError(f"n is {n}; the number of rows must not be negative.")
        infer = self._infer()
        drawn = infer.condition(given).sample(n, random_state=random_state).astype(np.intp)
        variables = enumerate(infer.domain.variables)
        return {variable.name: take_states(variable.states, drawn[:, place]) for place, variable in variables}


def _over_batches(
    work: Callable[[Columns, int], Floats], data: Any, domain: Domain, columns: Any, shape: tuple[int, ...]
) -> Floats:
    """The answers (n, *shape) of all batches of rows, one after the other."""
    parts = [work(found, n) for found, n in coded_columns(data, domain, columns)]
    return np.concatenate(parts) if parts else np.empty((0, *shape))
