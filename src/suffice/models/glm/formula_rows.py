"""Formulas of rows that are not in memory: one pass learns what formulaic has to know, then rows get their terms.

What a formula learns of its rows are the levels of factors, which add up by union, and the mean and the variance of
`center`, `scale` and `standardize`, which add up by the rule of Chan, Golub and LeVeque. Knots and orthogonal
polynomials do not add up, and a lag needs the row before: these are refused by name.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.domain import Domain
from suffice.errors import DataError, OptionError
from suffice.models.glm.formula import (
    INTERCEPT,
    formulaic_module,
    is_plain,
    matrix_of,
    specification_from_dict,
    specification_to_dict,
)
from suffice.models.glm.formula_messages import formula_errors, missing_rows, sides_of
from suffice.models.glm.formula_offset import offset_values
from suffice.models.glm.held_rows import PreparedRows
from suffice.models.glm.stream import RegressionWork
from suffice.sources.base import Batch, Source
from suffice.sources.held import Settled
from suffice.sources.releasing import Disclosed

#: The column that an offset() of a formula makes.
OFFSET = "offset()"
#: Transforms whose state is a mean and a scale, which are the second and the third argument.
_MOMENTS = ("center", "scale", "standardize")
#: Transforms that need all rows at once.
_WHOLE = ("bs", "cc", "cr", "cs", "poly", "lag")


# -- what a formula learns ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TermMoments:
    """The mean of some rows, or what is taken off in its place, and the sum of squares about it; None if not asked."""

    rows: int
    mean: Any
    squares: Any
    ddof: float

    @classmethod
    def of(cls, state: Mapping[str, Any], rows: int) -> TermMoments:
        """From what a transform has learned of some rows."""
        scale, free = state["scale"], rows - state["ddof"]
        squares = None if scale is None else scale**2 * free if free > 0 else 0.0
        return cls(rows, state["center"], squares, state["ddof"])

    def __add__(self, other: TermMoments) -> TermMoments:
        """Both sets of rows."""
        rows, mean, squares = self.rows + other.rows, self.mean, self.squares
        apart = 0.0 if mean is None else other.mean - mean
        if apart:
            mean = mean + apart * other.rows / rows
        if squares is not None:
            squares = squares + other.squares + apart**2 * self.rows * other.rows / rows
        return TermMoments(rows, mean, squares, self.ddof)

    def state(self, scale: float | None) -> dict[str, Any]:
        """As a transform keeps it; scale: the one that its call gives."""
        if scale is None and self.squares is not None:
            scale = float(np.sqrt(self.squares / (self.rows - self.ddof)))
        return {"ddof": self.ddof, "center": self.mean, "scale": scale}


@dataclass(frozen=True, eq=False)
class FormulaState:
    """What some rows say: their number, those without missing values, levels of factors by expression, and moments.

    `empty` is a table of no rows, whose columns have their types.
    """

    rows: int = 0
    complete: int = 0
    levels: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)
    moments: Mapping[str, TermMoments] = field(default_factory=dict)
    empty: Any = None

    def __add__(self, other: FormulaState) -> FormulaState:
        """Both sets of rows."""
        rows, complete = self.rows + other.rows, self.complete + other.complete
        if not self.complete or not other.complete:
            return replace(self if self.complete else other, rows=rows, complete=complete)
        if self.levels.keys() != other.levels.keys():
            name = min(self.levels.keys() ^ other.levels.keys())
            raise DataError(f"{name!r} holds numbers in some parts of the data and labels in others; give it one type.")
        levels = {name: _united(states, other.levels[name]) for name, states in self.levels.items()}
        moments = {name: one + other.moments[name] for name, one in self.moments.items()}
        return FormulaState(rows, complete, levels, moments, self.empty)


def _united(some: tuple[Hashable, ...], others: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """All levels: sorted where both are, which is how they come unless a column of categories has an order."""
    together = tuple(dict.fromkeys((*some, *others)))
    return _sorted(together) if some != others and _sorted(some) == some and _sorted(others) == others else together


def _sorted(levels: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    import pandas as pd

    return tuple(pd.Categorical(list(levels)).categories)


@dataclass(frozen=True, eq=False)
class FormulaSurvey:
    """The pass that learns: every factor of a formula on its own.

    Categories come without their contrasts, which may name a level that is not there in every shard. `missing` are the
    texts that stand for a missing value.
    """

    factors: tuple[str, ...]
    columns: tuple[Hashable, ...]
    missing: frozenset[str] = frozenset()

    def disclosed(self) -> Disclosed:
        """Levels, and sums over all rows."""
        return Disclosed(columns=self.columns)

    def prepare(self, batch: Batch) -> FormulaState:
        """What the rows of a shard say."""
        for factor in self.factors:
            check_plain(factor)
        if not batch.rows:
            return FormulaState()
        frame = frame_of(batch, self.columns)
        frame = frame.mask(frame.isin(self.missing)) if self.missing else frame
        with formula_errors(frame), np.errstate(all="ignore"):
            built = formulaic_module().Formula(" + ".join(("0", *self.factors))).get_model_matrix(frame)
        learned, rows = built.model_spec, len(built)
        levels = {
            name: tuple(state["categories"])
            for name, (_, state) in learned.encoder_state.items()
            if "categories" in state
        }
        moments = {name: TermMoments.of(state, rows) for name, state in learned.transform_state.items() if state}
        return FormulaState(batch.rows, rows, levels, moments, frame.iloc[:0])

    def evaluate(self, prepared: FormulaState, parameters: None) -> FormulaState:
        """The same, whatever is asked."""
        return prepared


def frame_of(batch: Batch, columns: Sequence[Hashable]) -> Any:
    """The columns of a formula as formulaic takes them."""
    import pandas as pd

    return pd.DataFrame({name: batch.raw[name].to_pandas() for name in columns}, index=range(batch.rows))


# -- its terms ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FormulaTerms:
    """What makes the columns of a design, `names`, and of a response on the left, `responses`, of rows anywhere.

    Both sides are plain data, as in a file: no expression but those that are checked is evaluated where the rows are.
    """

    columns: tuple[Hashable, ...]
    right: Mapping[str, Any]
    names: tuple[str, ...]
    constant: bool
    left: Mapping[str, Any] | None = None
    responses: tuple[str, ...] = ()
    offset: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What travels: plain data."""
        return {name: value for name, value in vars(self).items() if not name.startswith("specification")}

    @cached_property
    def specification(self) -> Any:
        """The right side as formulaic has it."""
        return specification_from_dict(self.right)

    @cached_property
    def specification_of_response(self) -> Any:
        """The left side as formulaic has it."""
        return None if self.left is None else specification_from_dict(self.left)

    @property
    def terms(self) -> list[tuple[Hashable, ...]]:
        """The columns that each term, and the response, is a function of."""
        sides = [side["terms"] for side in (self.right, self.left) if side is not None]
        words = [{word for factor, _ in term for word in (factor, *_words(factor))} for side in sides for term in side]
        words += [] if self.offset is None else [set(_words(self.offset))]
        return [tuple(name for name in self.columns if name in some) for some in words]

    def joined_to(self, batch: Batch) -> Batch:
        """The batch with these columns of numbers."""
        frame = frame_of(batch, self.columns)
        left = self.specification_of_response
        made = [] if left is None else list(matrix_of(left, frame, self.responses).T)
        made += list(matrix_of(self.specification, frame, self.names).T)
        real = (*batch.real, *self.responses, *self.names)
        if self.offset is not None:
            made, real = [*made, offset_values(self.offset, frame)], (*real, OFFSET)
        reals = np.concatenate((batch.reals, np.reshape(made, (len(made), batch.rows))))
        return replace(batch, real=real, reals=reals)


@dataclass(frozen=True, eq=False, kw_only=True)
class FormulaWork(RegressionWork):
    """A design and a response that formulaic makes of the rows of a shard."""

    terms: FormulaTerms

    @property
    def made(self) -> tuple[Hashable, ...]:
        """The columns that are made."""
        return (*self.terms.responses, *self.terms.names, *(() if self.terms.offset is None else (OFFSET,)))

    @property
    def raw(self) -> tuple[Hashable, ...]:
        """The columns that they are made of."""
        return self.terms.columns

    def disclosed(self) -> Disclosed:
        """Products of two terms, and of each with the response."""
        label = [] if self.label is None else [(self.label.name,)]
        return replace(Disclosed.by_pairs([*self.terms.terms, *label]), columns=self.terms.columns)

    def prepare(self, batch: Batch) -> PreparedRows:
        """The block of a shard."""
        return super().prepare(self.terms.joined_to(batch))


def read_terms(source: Source, formula: str, constant: bool, offset: str | None = None) -> FormulaTerms:
    """The terms of a formula, after one pass for what they learn.

    constant: whether an intercept that the formula has is one; offset: the expression of its offset().
    """
    formulaic = formulaic_module()
    with formula_errors(source, formula):
        parsed = formulaic.Formula(formula)
    left, right = sides_of(parsed, formula)
    sides = [side for side in (left, right) if side is not None]
    surveyed = {
        str(factor.expr): _surveyed(str(factor.expr), factor.eval_method.value)
        for side in sides
        for term in side
        for factor in term.factors
        if factor.eval_method.value != "literal"
    }
    expressions = [*surveyed, *(() if offset is None else (offset,))]
    words = {word for expression in expressions for word in (expression, *_words(expression))}
    columns = tuple(name for name in source.columns if name in words)
    state = _state(source, FormulaSurvey(tuple(dict.fromkeys(surveyed.values())), columns, source.missing_texts))
    if state.complete != state.rows:
        raise missing_rows(state.rows - state.complete, state.rows)
    state = replace(state, levels={**state.levels, **_categories(source, columns, state)})
    specifications = [_specification(side, surveyed, state) for side in sides]
    built = [list(one.get_model_matrix(state.empty).columns) for one in specifications]
    names = tuple(name for name in built[-1] if name != INTERCEPT)
    with_constant = constant and INTERCEPT in built[-1]
    plain = [specification_to_dict(one) for one in specifications]
    if left is None:
        return FormulaTerms(columns, plain[0], names, with_constant, offset=offset)
    return FormulaTerms(columns, plain[1], names, with_constant, plain[0], tuple(built[0]), offset)


def _words(expression: str) -> list[str]:
    return re.findall(r"[^\W\d]\w*", expression)


def check_plain(factor: str) -> None:
    """Raise unless a factor of a survey is the name of a column, or an expression that calls nothing unknown."""
    inner = factor[1:-1]
    named = len(factor) > 1 and factor[0] == factor[-1] == "`" and "`" not in inner
    written = factor[:1] == "{" and factor[-1:] == "}" and not set("{}") & set(inner) and is_plain(inner)
    if not (named or written):
        raise OptionError(f"The factor {factor!r} is no column and no expression of known functions.")


def _state(source: Source, survey: FormulaSurvey) -> FormulaState:
    """What all rows say; a formula without columns has nothing to ask."""
    if not survey.columns:
        return survey.prepare(replace(Batch.empty(Domain([])), rows=1))
    with source.hold(survey, Settled(Domain([]), source.rows or 0, 0.0), raw=survey.columns) as held:
        state: FormulaState = held.sum(None)
    if not state.rows:
        raise DataError("There are no rows to learn from.")
    return state


def _categories(source: Source, columns: Sequence[Hashable], state: FormulaState) -> dict[str, tuple[Hashable, ...]]:
    """The levels of columns of categories: those that the column brings, in its order, held by a row or not."""
    known = {}
    for name in columns:
        variable = source.infer([name])[name]
        if variable.origin == "category" and variable.states:
            factors = [text for text in (str(name), f"C({name})") if text in state.levels]
            known.update(dict.fromkeys(factors, variable.states))
    return known


def _surveyed(expression: str, method: str) -> str:
    """A factor as the pass that learns has it, or an error where one pass cannot learn it."""
    if method == "lookup":
        return f"`{expression}`"
    if not is_plain(expression):
        raise DataError(
            f"The term {expression!r} of the formula calls something else than transforms of formulaic and functions "
            "of NumPy that work number by number, and the rows are not in memory. Make that column before the fit."
        )
    root = ast.parse(expression, mode="eval").body
    learning = [node for node in ast.walk(root) if _called(node) in (*_MOMENTS, *_WHOLE)]
    nested = [node for outer in learning for node in ast.walk(outer) if node is not outer and node in learning]
    wrong = [node for node in learning if _called(node) in _WHOLE] + nested
    if wrong:
        within = " within another transform" if wrong[0] in nested else ""
        raise OptionError(
            f"The transform {_called(wrong[0])!r}{within} of the formula's term {expression!r} needs all rows at once, "
            f"and they are not in memory. Make that column before the fit; {', '.join(_MOMENTS)} are learned in a pass."
        )
    assert isinstance(root, ast.expr)
    return f"{{{ast.unparse(_bare(root))}}}"


def _bare(root: ast.expr) -> ast.expr:
    """A call of C without contrasts and levels."""
    if isinstance(root, ast.Call) and _called(root) == "C":
        return ast.Call(root.func, root.args[:1], [one for one in root.keywords if one.arg == "data"])
    return root


def _called(node: ast.AST) -> str:
    """The name of the transform that a call calls."""
    return getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""


def _specification(side: Any, surveyed: Mapping[str, str], state: FormulaState) -> Any:
    """The specification of one side, with what all rows have said."""
    kind = importlib.import_module("formulaic.parser.types").Factor.Kind.CATEGORICAL
    levels = {name: state.levels[bare] for name, text in surveyed.items() if (bare := text[1:-1]) in state.levels}
    return formulaic_module().ModelSpec(
        formula=side,
        output="pandas",
        transform_state={name: one.state(_given_scale(name)) for name, one in state.moments.items()},
        encoder_state={name: (kind, {"categories": list(states)}) for name, states in levels.items()},
    )


def _given_scale(expression: str) -> float | None:
    """The number that a call of a transform gives for its scale, where it gives one."""
    call = ast.parse(expression, mode="eval").body
    assert isinstance(call, ast.Call)
    third = call.args[2:3] + [one.value for one in call.keywords if one.arg in ("scale", "rescale")]
    number = ast.literal_eval(third[0]) if third else True
    return None if isinstance(number, bool) else float(number)
