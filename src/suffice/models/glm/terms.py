"""Terms of a regression: which coefficients belong together, and how the levels of a factor differ."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import choice, truth
from suffice.choices import TermTest, choices
from suffice.errors import EstimateError, OptionError, listing, meant
from suffice.fitting.contract import Inputs
from suffice.fitting.control import Control
from suffice.fitting.hypotheses import HypothesisTest, wald_test_of
from suffice.fitting.inference import Inference
from suffice.fitting.parameter_table import EstimateTable, NumberTable
from suffice.models.glm.design import Factor
from suffice.models.glm.fitted import GLMFitted
from suffice.models.glm.profile import problem_of_fit
from suffice.models.glm.ratios import exponentiated
from suffice.models.glm.results import inference_of
from suffice.solvers.irls import irls

if TYPE_CHECKING:
    from suffice.models.glm.declaration import GLM


# -- which coefficients belong together --------------------------------------------------------------------------------


def terms_of(fitted: GLMFitted) -> dict[str, list[int]]:
    """The places of each term among the coefficients of a linear predictor, the intercept left out."""
    ahead, first = len(fitted.thresholds), len(fitted.thresholds) + int(fitted.design.constant)
    if fitted.specification is not None:
        return _terms_of_formula(fitted, first)
    terms: dict[str, list[int]] = {}
    for column in fitted.design.columns:
        size = column.coded if isinstance(column, Factor) else 1
        terms[str(column.variable.name if isinstance(column, Factor) else column)] = list(range(first, first + size))
        first += size
    sparse = {name: [first + number] for number, name in enumerate(fitted.design.sparse)}
    assert first + len(sparse) == ahead + fitted.design.size
    return terms | sparse


def _terms_of_formula(fitted: GLMFitted, first: int) -> dict[str, list[int]]:
    """Those of formulaic, found by the names of their columns."""
    patterns = {}
    for term in fitted.specification.formula:
        factors = [str(factor.expr) for factor in term.factors]
        if factors != ["1"]:
            each = (re.escape(factor) + r"(?:\[.*\])?" for factor in factors)
            patterns[":".join(factors)] = re.compile(":".join(each))
    terms: dict[str, list[int]] = {name: [] for name in patterns}
    for number, column in enumerate(map(str, fitted.design.reals)):
        # The shortest fits: "a[T.b]" alone would be the term a, and a:b none.
        name = next(name for name, pattern in patterns.items() if pattern.fullmatch(column) and _alike(name, column))
        terms[name].append(first + number)
    return {name: places for name, places in terms.items() if places}


def _alike(term: str, column: str) -> bool:
    """Whether a column has as many factors as a term; what stands in brackets or calls does not count."""
    bare = [re.sub(r"\[[^\]]*\]|\([^()]*\)", "", text) for text in (term, column)]
    return bare[0].count(":") == bare[1].count(":")


# -- joint tests -------------------------------------------------------------------------------------------------------


def term_tests(
    model: GLM, X: object = None, y: object = None, *, method: TermTest = "wald", **rows: Any
) -> NumberTable:
    """Test each term, all of its coefficients together: a factor with all levels, as an analysis of deviance.

    Args:
        model: a fitted GLM.
        X: the rows of the fit, for method="likelihood-ratio" (with a formula they name the response, too).
        y: their response.
        method: "wald", by the covariance of the fit, robust ones too; or "likelihood-ratio", by a fit without the term
            (the size of a negative binomial response and the dispersion stay those of the whole fit).
        rows: sample_weight, offset, exposure, trials, columns, as for `fit`.

    Returns:
        A row for each term beside all others: statistic, degrees of freedom, p value; chi-squared, or F where the
        dispersion is estimated.
    """
    fitted, inference = model.fitted_, inference_of(model)
    ratio = choice(method, "method", choices(TermTest)) == "likelihood-ratio"
    if not ratio and (X is not None or y is not None or any(one is not None for one in rows.values())):
        raise OptionError("Wald tests need no rows. Leave them out, or give method='likelihood-ratio'.")
    terms = terms_of(fitted)
    if not terms:
        raise EstimateError("The fit has no terms beside the intercept; there is nothing to test.")
    tests = _ratio_tests(model, Inputs(X, {"y": y, **rows}), terms) if ratio else _wald_tests(fitted, inference, terms)
    one = next(iter(tests.values()))
    name = one.name
    titles = (name, "df", "p value") if one.df_rest is None else (name, "df", "df rest", "p value")
    lines = tuple(
        (
            term,
            (test.statistic, test.df, *(() if test.df_rest is None else (test.df_rest,)), test.p_value),
        )
        for term, test in tests.items()
    )
    words = "each term beside all others, " + ("by likelihood ratio" if ratio else "by Wald's statistic")
    return NumberTable((("terms", words),), titles, lines)


def _places(fitted: GLMFitted, places: list[int]) -> list[int]:
    """Those of all linear predictors, without columns that were left out."""
    size, m = fitted.parameters.size, fitted.beta.shape[1]
    dropped = {int(fitted.parameters.places[number]) for number in fitted.dropped}
    return [number * size + index for number in range(m) for index in places if index not in dropped]


def _wald_tests(fitted: GLMFitted, inference: Inference, terms: dict[str, list[int]]) -> dict[str, HypothesisTest]:
    whole = np.eye(len(inference.names))
    chosen = {name: _places(fitted, places) for name, places in terms.items()}
    return {
        name: wald_test_of(inference, whole[places], np.zeros(len(places))) for name, places in chosen.items() if places
    }


def _ratio_tests(model: GLM, given: Inputs, terms: dict[str, list[int]]) -> dict[str, HypothesisTest]:
    """The drop of twice the log-likelihood, in units of the dispersion, where the coefficients of a term are 0."""
    from scipy.special import chdtrc, fdtrc

    fitted, options = model.fitted_, model._fit_options()
    if options.given["prior"] is not None:
        raise EstimateError("Likelihood ratios are of maximum likelihood, and the fit has a prior. Use method='wald'.")
    if given.data is None:
        raise OptionError("Likelihood ratios need the rows again: term_tests(X, y, method='likelihood-ratio').")
    data, problem, best, top = problem_of_fit(options, fitted, given)
    rest = inference_of(model).df
    inner = np.argsort(data.parameters.places)  # Where each name stands in the engine's layout.
    size, free = data.parameters.size, _free(fitted, len(best))
    tests = {}
    for name, places in terms.items():
        gone = [number // size * size + int(inner[number % size]) for number in _places(fitted, places)]
        if not gone:
            continue
        fixed = best.copy()
        fixed[gone] = 0.0
        kept = np.setdiff1d(free, np.array(gone))
        held = problem.holding(kept, fixed)
        left = irls(held.evaluate, fixed[kept], Control(tolerance=1e-9)).outcome.state.objective
        drop, df = max(0.0, 2.0 * (top - left)), float(len(gone))
        if rest is None:
            tests[name] = HypothesisTest(drop, df, float(chdtrc(df, drop)))
        else:
            tests[name] = HypothesisTest(drop / df, df, float(fdtrc(df, rest, drop / df)), rest, "F")
    return tests


def _free(fitted: GLMFitted, size: int) -> NDArray[np.intp]:
    """Places in the engine's layout but those of columns that were left out."""
    k = fitted.parameters.size
    return np.array([index for index in range(size) if index % k not in fitted.dropped], dtype=np.intp)


# -- contrasts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Levels:
    """The levels of a factor, and the place of the coefficient of each; None for the reference."""

    states: tuple[Hashable, ...]
    places: tuple[int | None, ...]


def contrasts(
    model: GLM,
    factor: Hashable,
    *,
    against: Hashable | None = None,
    pairs: bool = False,
    exponentiate: bool = False,
    level: float = 0.95,
) -> EstimateTable:
    """Differences of the effects of the levels of a factor, with errors, tests and intervals.

    Args:
        model: a fitted GLM.
        factor: the column, or as the formula has it.
        against: the level that the others are compared with; that of the fit unless said.
        pairs: every level with every other one before it.
        exponentiate: ratios in place of differences: of odds with a logit link, of means with a log link.
        level: probability of each interval; nothing is adjusted for the number of contrasts.
    """
    fitted, inference = model.fitted_, inference_of(model)
    levels = _levels_of(fitted, factor)
    chosen = _chosen(levels, against, truth(pairs, "pairs"))
    size, m = fitted.parameters.size, fitted.beta.shape[1]
    labels = fitted.column_labels() if m > 1 else [""]
    names, matrix = [], []
    for number, label in enumerate(labels):
        for high, low in chosen:
            row = np.zeros(m * size)
            for which, sign in ((high, 1.0), (low, -1.0)):
                index = levels.places[which]
                if index is not None:
                    row[number * size + index] += sign
            names.append(f"{levels.states[high]} - {levels.states[low]}" + (f" ({label})" if label else ""))
            matrix.append(row)
    table = linear_inference(inference, np.array(matrix), tuple(names), "difference")
    head = (("factor", f"{factor}, {len(levels.states)} levels"),)
    if truth(exponentiate, "exponentiate"):
        return exponentiated(table, fitted, head, level)
    return EstimateTable.of_estimates(table, head, level)


def linear_inference(inference: Inference, matrix: Floats, names: tuple[str, ...], heading: str) -> Inference:
    """What a fit says about linear forms of its parameters, (r, k)."""
    used = np.flatnonzero(matrix.any(axis=0))
    part = matrix[:, used]
    with np.errstate(invalid="ignore"):
        values = part @ inference.values[used]
    return Inference.of_covariance(
        names,
        values,
        lambda: part @ inference.covariance_of(used.tolist()) @ part.T,
        df=inference.df,
        heading=heading,
    )


def _chosen(levels: _Levels, against: Hashable | None, pairs: bool) -> list[tuple[int, int]]:
    """The pairs of levels to compare."""
    count = len(levels.states)
    if count < 2:
        raise EstimateError(f"The factor has the single level {listing(levels.states)}; there is nothing to compare.")
    if pairs:
        if against is not None:
            raise OptionError("pairs=True compares every two levels, so that against= has no effect; leave one out.")
        return [(high, low) for high in range(count) for low in range(high)]
    if against is None:
        base = levels.places.index(None) if None in levels.places else 0
    elif against in levels.states:
        base = levels.states.index(against)
    else:
        raise OptionError(
            f"against is {against!r}, and there is no such level.{meant(against, levels.states)} There are "
            f"{listing(levels.states)}."
        )
    return [(number, base) for number in range(count) if number != base]


def _levels_of(fitted: GLMFitted, factor: Hashable) -> _Levels:
    """The levels of a factor by its column, or by its expression in a formula."""
    ahead = len(fitted.thresholds)
    if fitted.specification is not None:
        return _levels_of_formula(fitted, str(factor), ahead)
    first, factors = ahead + int(fitted.design.constant), []
    for column in fitted.design.columns:
        if isinstance(column, Factor):
            factors.append(column.variable.name)
            if column.variable.name == factor:
                own: list[int | None] = list(range(first, first + column.coded))
                return _Levels(column.variable.states, (*([] if column.full else [None]), *own))
        first += column.coded if isinstance(column, Factor) else 1
    raise OptionError(
        f"{factor!r} is no factor of the fit.{meant(factor, factors)} Its factors are: {listing(factors) or 'none'}. "
        "Columns of numbers become factors by categorical=."
    )


def _levels_of_formula(fitted: GLMFitted, factor: str, ahead: int) -> _Levels:
    states = {
        str(expression): tuple(state["categories"])
        for expression, (_, state) in fitted.specification.encoder_state.items()
        if "categories" in state
    }
    name = factor if factor in states else next((n for n in states if re.fullmatch(rf"C\({factor}\b.*\)", n)), None)
    if name is None:
        raise OptionError(
            f"{factor!r} is no factor of the formula.{meant(factor, states)} Its factors are: "
            f"{listing(states) or 'none'}. Write C({factor}) for a column that holds levels."
        )
    terms = terms_of(fitted)
    crossed = [term for term in terms if term != name and name in term.split(":")]
    if crossed:
        raise OptionError(
            f"The effect of {name} depends on other columns, as the formula has {listing(crossed)}. Ask for it by "
            "marginal_effects(X, at={...}), or test equations of coefficients."
        )
    columns = {str(column): ahead + int(fitted.design.constant) + n for n, column in enumerate(fitted.design.reals)}
    places = tuple(columns.get(f"{name}[T.{state}]", columns.get(f"{name}[{state}]")) for state in states[name])
    if places.count(None) > 1 or len([index for index in places if index is not None]) != len(terms.get(name, ())):
        raise OptionError(
            f"The levels of {name} are coded by other contrasts than against a reference; test equations of the "
            "coefficients, or write the factor as it is."
        )
    return _Levels(states[name], places)
