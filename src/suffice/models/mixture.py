"""Mixtures that are learned: the states of a hidden Markov model whose sequences have one step each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.calls import meant_argument, taken_arguments
from suffice.checks import listed_names, weights_of
from suffice.domain import is_missing
from suffice.errors import CallError, MissingValueError, OptionError, listing
from suffice.families.dirichlet import Dirichlet
from suffice.families.multivariate_normal import MultivariateNormal
from suffice.fitting.fit import Fit
from suffice.fitting.inference import Inference, inference_of
from suffice.fitting.named import NamedVector
from suffice.fitting.portrait import Portrait, redrawn_rows
from suffice.fitting.report import Report
from suffice.fitting.samples import unused_target
from suffice.models.hidden_markov.declaration import HiddenMarkovModel
from suffice.models.hidden_markov.emissions.distributions import IndependentColumns, MixtureDistribution, MixtureFitted
from suffice.models.hidden_markov.estimates import again
from suffice.models.hidden_markov.estimates import inference_of as chain_inference
from suffice.records import copy_with
from suffice.sources.sequences import is_table, open_sequences, table_columns

#: Options of a hidden Markov model that speak of its transitions, or of what `Mixture` says itself.
IDLE = frozenset({"states", "emission", "transitions", "topology"})


def named_columns(data: Any, columns: Any) -> tuple[Hashable, ...] | None:
    """The columns of a table that are read; None of arrays and lists."""
    if not is_table(data):
        return None
    return tuple(table_columns(data)) if columns is None else listed_names(columns, "columns")


def values_of(data: Any) -> Any:
    """Rows as one array of values: a list of texts holds these, and no sequences of characters."""
    texts = isinstance(data, list | tuple) and bool(data) and all(isinstance(value, str) for value in data)
    return np.array(data, dtype=object) if texts else data


class Mixture(MixtureDistribution):
    """``sum_m weights[m] f_m(x)``: the distribution of a step that comes from one of several distributions.

    Unfitted, also as the emission of a hidden Markov model: ``Mixture(Normal(), 3)``, three components in each state.
    Given: ``Mixture([Normal(0, 1), Normal(5, 2)], weights=[0.3, 0.7])``.

    Args:
        components: an unfitted distribution, or a list of given ones.
        n: how many components an unfitted mixture has.
        weights: one for each given component; equal unless said.

    >>> from suffice import Normal
    >>> Mixture([Normal(0, 1), Normal(10, 1)], weights=[0.25, 0.75]).mean()
    7.5
    """

    #: The hidden Markov model that was learned, and one to be learned whose start is known.
    _chain: HiddenMarkovModel | None = None
    _begin: HiddenMarkovModel | None = None

    def fit(self, data: Any, y: Any = None, *, sample_weight: Any = None, columns: Any = None, **options: Any) -> Self:
        """Learn the components by EM: every step is a sequence of its own, and its state the component.

        Further options are those of `HiddenMarkovModel`, such as ``n_init`` and ``random_state``, but for those of
        transitions, of which there are none.
        """
        unused_target(self, y)
        idle = sorted(IDLE & options.keys())
        if idle:
            raise OptionError(
                f"{listing(idle)} of a Mixture would have no effect: its rows follow no order. Leave it out."
            )
        components = self._options["components"]
        if isinstance(components, tuple):
            raise OptionError("There is nothing to fit: the components are given. Give an unfitted distribution and n.")
        strange = [name for name in options if name not in taken_arguments(HiddenMarkovModel.__init__)]
        if strange:
            known = sorted({*taken_arguments(HiddenMarkovModel.__init__)} - IDLE - {"self"})
            raise CallError(
                f"Mixture.fit has no argument {strange[0]!r}.{meant_argument(strange[0], known)} Its arguments are: "
                f"data, y, sample_weight, columns, and options of EM: {listing(known, 40)}."
            )
        names = named_columns(data, columns)
        steps = open_sequences(values_of(data), columns=columns).values
        begun = None if self._begin is None or options else self._begin.clone()
        model = begun or HiddenMarkovModel(int(self._options["n"]), emission=components, **options)
        model.fit(steps, lengths=np.ones(len(steps), np.int64), sample_weight=sample_weight)
        self._chain = model
        fitted = MixtureFitted(tuple(model.emissions_), model.initial_, names)
        # Transitions of sequences of one step are no parameters.
        free = model.n_params_ - len(fitted.weights) * (len(fitted.weights) - 1)
        return self._adopt(Fit(fitted, replace(model.report_, model=fitted.title, n_params=free)))

    @property
    def n_params_(self) -> int:
        """Free parameters: weights but one, and those of the components."""
        report = self._bare_report()
        return self.fitted_.n_params if report is None else report.n_params

    @property
    def standard_errors_(self) -> NamedVector:
        """Standard errors of weights and components, from the observed information, in the order of `summary()`."""
        inference = inference_of(self)
        return NamedVector.of(inference.errors, inference.names)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        drawn = super().portrait()
        if self._chain is None or self._fit is None:
            return drawn
        inference = partial(_inference, self._chain)
        return replace(drawn, inference=inference, redraw=partial(redrawn_rows, self), again=self._again)

    def _again(self) -> Self:
        """A copy whose fit begins where this one ended, so that its components keep their places."""
        assert self._chain is not None
        return copy_with(self, _fit=None, _chain=None, _begin=again(self._chain))

    def _read_again(self, rows: Mapping[str, Any]) -> Any:
        """What the hidden Markov model reads of rows that are given again."""
        assert self._chain is not None
        steps = open_sequences(values_of(rows.get("data")), columns=rows.get("columns")).values
        given = {"data": steps, "lengths": np.ones(len(steps), np.int64), "sample_weight": rows.get("sample_weight")}
        return self._chain._read_again(given)

    @property
    def _of_vectors(self) -> bool:
        """Whether a component is a distribution of several columns."""
        return isinstance(self.fitted_.components[0], MultivariateNormal | Dirichlet | IndependentColumns)

    def _rows(self, data: Any, columns: Any) -> NDArray[Any]:
        """New rows (n,) or (n, d), with the columns that were learned by their names; a missing value is an error."""
        if columns is None and named_columns(data, None) is not None and self.fitted_.columns is not None:
            columns = list(self.fitted_.columns)
        rows = open_sequences(values_of(data), columns=columns).values
        rows = rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 and not self._of_vectors else rows
        missing = np.array([is_missing(value) for value in rows.ravel().tolist()], dtype=bool).reshape(rows.shape)
        if missing.any():
            row = int(np.argmax(missing.reshape(len(rows), -1).any(axis=1)))
            raise MissingValueError(
                f"Row {row} has a missing value; a row is scored as a whole. Leave such rows out, or fill the missing "
                "values."
            )
        return rows

    def score_samples(self, x: Any) -> Floats:
        """Log density or log probability of each row (n,); of a table the columns that were learned."""
        return np.atleast_1d(self.log_prob(self._rows(x, None)))

    def score(self, data: Any, y: Any = None, *, sample_weight: Any = None, columns: Any = None) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm; `y` is as in `fit`."""
        unused_target(self, y)
        rows = self._rows(data, columns)
        weights = weights_of(sample_weight, len(rows), "row")
        used = weights > 0.0
        if not used.any():
            raise OptionError("The score of no rows is undefined: the data have no weight. Give rows.")
        return float(weights[used] @ np.atleast_1d(self.log_prob(rows))[used]) / float(weights.sum())

    def _task(self) -> Any:
        raise OptionError("A Mixture is learned by EM, which needs all rows at once. Give them to fit together.")

    def to_dict(self) -> dict[str, Any]:
        """Options, and what was learned."""
        state: dict[str, Any] = {"options": dict(self._options), "fitted": None}
        if self._bare_report() is not None:
            state |= {"fitted": self.fitted_.to_dict(), "report": self.report_.to_dict()}
        return state

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls(**plain["options"])
        if plain["fitted"] is not None:
            fitted = cls._of(tuple(plain["fitted"]["components"]), plain["fitted"]["weights"])
            names = plain["fitted"].get("columns")
            fitted = fitted if names is None else replace(fitted, columns=tuple(names))
            model._adopt(Fit(fitted, Report.from_dict(plain["report"])))
        return model


def _inference(chain: HiddenMarkovModel) -> Inference:
    """Weights and components: first states and what states emit, of sequences without a second step."""
    known = chain_inference(chain)
    states = len(chain.initial_)
    kept = np.setdiff1d(np.arange(len(known.names)), np.arange(states, states + states**2))
    names = [f"weight of {state}" for state in chain.states_] + [known.names[number] for number in kept[states:]]
    lowest, highest = (np.broadcast_to(end, known.values.shape)[kept] for end in (known.lowest, known.highest))
    return Inference(
        tuple(names),
        known.values[kept],
        lambda: known.errors[kept],
        lowest=lowest,
        highest=highest,
        tested=np.zeros(len(kept), dtype=bool),
        about=known.about,
    )
