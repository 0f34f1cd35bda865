"""How a probability follows each single parameter: sensitivity functions, and where a decision changes.

A cell t of a table moves, and the others of its row share what is left in their old proportions. P(q, e) and P(e) are
then linear in t, so that P(q | e) is a quotient of two linear functions (Castillo, Gutierrez and Hadi 1997), which the
derivatives at one point give exactly, for all cells at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from suffice.array_types import Floats
from suffice.checks import positive
from suffice.errors import EstimateError, OptionError, listing
from suffice.models.bayesian.error_bars.answers import NetworkQuestion
from suffice.models.bayesian.error_bars.derivatives import joint_derivatives
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.uncertain import odds_interval
from suffice.records import record

if TYPE_CHECKING:
    from suffice.models.bayesian.error_bars.spread import ParameterSpreads
    from suffice.models.bayesian.posterior import LearnedParameters

#: Parameters that a print shows.
SHOWN = 10
#: An answer that moves by less, over the whole range of a parameter, does not depend on it but for rounding.
ROUNDING = 1e-12


@record(frozen=True, eq=False)
class ParameterSensitivity:
    """How P(target | given) follows one probability P(node = state | parents) of a table.

    `value` is the parameter and `derivative` the slope of the answer there. With s = t - value,
    P(target = k | given) is (shares[k] + slopes[k] s) / (1 + sum(slopes) s) where the parameter is t.
    """

    node: Hashable
    state: Hashable
    parents: Mapping[Hashable, Hashable]
    value: float
    shares: Floats
    slopes: Floats
    chosen: int
    states: Sequence[Hashable]

    @property
    def name(self) -> str:
        """Such as "P(wet=yes | rain=no)"."""
        given = ", ".join(f"{name}={state}" for name, state in self.parents.items())
        return f"P({self.node}={self.state}" + (f" | {given})" if given else ")")

    @property
    def derivative(self) -> float:
        """Of the probability of the state that was asked about."""
        return float(self.slopes[self.chosen] - self.shares[self.chosen] * self.slopes.sum())

    def at(self, value: float) -> float:
        """The probability of the state that was asked about, if the parameter were another."""
        return float(self.distribution_at(value)[self.chosen])

    def distribution_at(self, value: float) -> Floats:
        """P(target | given) (k,), if the parameter were another; an error where the evidence would be impossible."""
        if not 0 <= value <= 1:
            raise OptionError(f"The parameter {self.name} is set to {value!r}; expected a probability, 0 to 1.")
        joint = np.maximum(self.shares + self.slopes * (value - self.value), 0.0)
        total = float(joint.sum())
        if not total > ROUNDING:
            raise EstimateError(f"At {self.name} = {value:g} the evidence has probability 0, so nothing follows.")
        return np.asarray(joint / total)

    @property
    def change(self) -> tuple[float, Hashable] | None:
        """The nearest value at which another state becomes the most probable, and that state; None where none does."""
        best = int(self.shares.argmax())
        nearest: tuple[float, Hashable] | None = None
        for other, state in enumerate(self.states):
            gain = float(self.slopes[other] - self.slopes[best])
            if other == best or abs(gain) < ROUNDING:
                continue
            value = self.value + float(self.shares[best] - self.shares[other]) / gain
            beyond = value + math.copysign(ROUNDING, value - self.value)
            if 0 <= beyond <= 1 and (nearest is None or abs(value - self.value) < abs(nearest[0] - self.value)):
                nearest = (value, state)
        return nearest


@record(frozen=True, eq=False)
class Bar:
    """The answers at both ends of the range of one parameter: a bar of a tornado plot."""

    name: str
    low: float
    high: float
    at_low: float
    at_high: float

    @property
    def width(self) -> float:
        """How far the answer moves."""
        return abs(self.at_high - self.at_low)


@record(frozen=True, eq=False)
class Sensitivity(Sequence[ParameterSensitivity]):
    """How P(target = state | given) follows every single parameter, the largest derivatives first.

    Parameters that do not matter are not among them. `left_out` are nodes that matter and have no table of their own:
    noisy-OR, noisy-MAX and GLM nodes, tables with constraints, and tied ones, whose parameters stand in several tables.
    """

    target: Hashable
    state: Hashable
    value: float
    parameters: Sequence[ParameterSensitivity]
    left_out: tuple[Hashable, ...]
    _spreads: ParameterSpreads

    @overload
    def __getitem__(self, index: int) -> ParameterSensitivity: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ParameterSensitivity]: ...

    def __getitem__(self, index: int | slice) -> Any:
        """A parameter by its rank."""
        return self.parameters[index]

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[ParameterSensitivity]:
        return iter(self.parameters)

    def of(self, node: Hashable, state: Hashable, parents: Mapping[Hashable, Hashable] | None = None) -> Any:
        """The parameter P(node = state | parents)."""
        wanted = dict(parents or {})
        for one in self.parameters:
            if (one.node, one.state) == (node, state) and dict(one.parents) == wanted:
                return one
        raise OptionError(
            f"P({node}={state} | {wanted!r}) is no parameter on which the answer depends. There are {len(self)}, such "
            f"as {listing([one.name for one in self.parameters[:3]])}."
        )

    def changes(self) -> list[tuple[ParameterSensitivity, float, Hashable]]:
        """Parameters with the nearest value at which the decision changes, and the state then most probable."""
        reached = [(one, *one.change) for one in self.parameters if one.change is not None]
        return sorted(reached, key=lambda entry: abs(entry[1] - entry[0].value))

    def tornado(self, n: int = SHOWN, *, level: float = 0.95, odds: float | None = None) -> list[Bar]:
        """The `n` widest ranges of the answer, each parameter moving by itself over its interval.

        level: of the interval that the rows leave each parameter. odds: a factor by which the odds of each are divided
        and multiplied instead, for parameters that were given.
        """
        bars = []
        for one in self.parameters:
            low, high = self._range(one, level, odds)
            bars.append(Bar(one.name, low, high, one.at(low), one.at(high)))
        return sorted(bars, key=lambda bar: -bar.width)[:n]

    def _range(self, one: ParameterSensitivity, level: float, odds: float | None) -> tuple[float, float]:
        p = one.value
        if odds is not None:
            factor = positive(odds, "odds")
            return p / (p + (1 - p) * factor), p * factor / (p * factor + 1 - p)
        node = self._spreads.nodes[one.node]
        group = next((group for group in self._spreads.groups if one.node in group), None)
        if group is None:
            return p, p  # A fixed node is certain.
        if self._spreads.observed is not None and self._spreads.observed.knows(one.node):
            node = node.with_errors(self._spreads.observed)
            error = node.standard_errors_.at({**one.parents, one.node: one.state})
        else:
            spread = self._spreads.of(group)
            derivative = np.zeros((1, *node.domain.shape(node.domain.names)))
            cells = {**one.parents, one.node: one.state}
            derivative[(0, *(node.domain[name].index(cells[name]) for name in node.domain.names))] = 1.0
            error = math.sqrt(float(type(spread).variance([spread], [[derivative]])[0]))
        ends = odds_interval(np.array([p]), np.array([error]), level)
        return float(ends[0][0]), float(ends[1][0])

    def __str__(self) -> str:
        lines = [f"P({self.target}={self.state}) = {self.value:.4g}; derivatives by {len(self)} parameters"]
        for one in self.parameters[:SHOWN]:
            words, change = "", one.change
            if change is not None:
                words = f"; {change[1]!r} {'above' if change[0] > one.value else 'below'} {change[0]:.4g}"
            lines.append(f"  {one.derivative:+.4f}  {one.name} = {one.value:.4g}{words}")
        rest = len(self) - SHOWN
        return "\n".join([*lines, f"  ... ({rest:,} more)"] if rest > 0 else lines)

    __repr__ = __str__


def sensitivity_of(
    parameters: LearnedParameters, target: Hashable, given: Any, do: Any, state: Hashable | None
) -> Sensitivity:
    """How a probability follows every parameter of the tables that matter."""
    question = NetworkQuestion.of(parameters.fitted, target, given, do)
    infer = question.asked.inference
    if infer.kind != "tables" or len(question.names) != 1:
        raise OptionError(
            f"sensitivity is about one discrete node of a network of tables; asked about {listing(question.names)}. "
            "Ask query(...).standard_errors for what the rows leave open in other networks."
        )
    name = question.names[0]
    if name in (question.known or {}):
        raise OptionError(f"{name!r} is the target and among the evidence: nothing moves it.")
    joint = joint_derivatives(infer, [name], question.known, question.learned, lambda _: True)
    states = infer.domain[name].states
    chosen = int(joint.values.argmax()) if state is None else infer.domain[name].index(state)
    tied = {name for group in parameters.learning.groups for name in group}
    moved: list[ParameterSensitivity] = []
    left_out = []
    for node, parts in joint.of_joint().items():
        one = question.asked.nodes[node]
        if not (isinstance(one, TableNode) and one.independent) or node in tied:
            left_out.append(node)
        else:
            moved += _of_table(one, parts[0], joint.values, chosen, states)
    moved.sort(key=lambda entry: -abs(entry.derivative))
    return Sensitivity(name, states[chosen], float(joint.values[chosen]), moved, tuple(left_out), parameters.spreads)


def _of_table(
    node: TableNode, derivatives: Floats, shares: Floats, chosen: int, states: Sequence[Hashable]
) -> Iterator[ParameterSensitivity]:
    """Each cell of a table that moves the answer; derivatives (k, ...) of P(q, e) / P(e)."""
    table, card = node.table_.values, node.card
    if card == 1:
        return
    rows, slopes = np.nan_to_num(table.reshape(-1, card)), derivatives.reshape(len(shares), -1, card)
    rest = 1 - rows
    # What is left goes to the other states in their old proportions, in equal parts where they had nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.where(rest[:, :, None] > 0, rows[:, None, :] / rest[:, :, None], 1.0 / (card - 1))
    others[:, np.arange(card), np.arange(card)] = 0.0
    along = slopes - np.einsum("krj,rxj->krx", slopes, others)
    away = np.abs(along - shares[:, None, None] * along.sum(axis=0)).max(axis=0)
    parents = node.domain.variables[:-1]
    for row, cell in zip(*np.nonzero(away > ROUNDING), strict=True):
        codes = np.unravel_index(int(row), table.shape[:-1]) if parents else ()
        yield ParameterSensitivity(
            node.name,
            node.domain.variables[-1].states[int(cell)],
            {parent.name: parent.states[int(code)] for parent, code in zip(parents, codes, strict=True)},
            float(rows[row, cell]),
            shares,
            along[:, row, cell],
            chosen,
            states,
        )
