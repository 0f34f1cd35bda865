"""What there is to see of a generalised linear model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import OptionError
from suffice.fitting.portrait import Estimates, Grid, Interval, Portrait, finite, matrix_grid, or_none

if TYPE_CHECKING:
    from suffice.fitting.inference import Inference
    from suffice.models.glm.declaration import GLM
    from suffice.models.glm.fitted import GLMFitted


def portrait_of(fitted: GLMFitted) -> Portrait:
    """Family and link, and the coefficients."""
    return Portrait(
        title="GLM",
        kind="glm",
        facts={"family": fitted.family, "link": fitted.link},
        n_params=lambda: fitted.n_params,
        parameters=lambda: dict(zip(fitted.flat_names(), fitted.limits().T.ravel().tolist(), strict=True)),
        tables=[lambda: matrix_grid("Coefficients", fitted.flat_names(), ["value"], fitted.limits().T, "signed")],
    )


def portrait_of_model(model: GLM) -> Portrait:
    """The same with the table of coefficients and their intervals; of a model without a fit its kind alone."""
    fitted = or_none(lambda: model.fitted_)
    return replace(
        Portrait(title="GLM", kind="glm") if fitted is None else fitted.portrait(),
        parameters=model.summary,
        text=lambda: str(model.summary()),
        tables=[partial(_coefficients, model)],
        table=partial(_table, model),
        matched=model.matched_statistics,
        estimates=partial(_estimates, model),
        inference=partial(_inference, model),
        redraw=partial(_redraw, model),
        again=partial(_again, model),
    )


def _inference(model: GLM) -> Inference:
    from suffice.models.glm.results import inference_of

    return inference_of(model)


def _redraw(model: GLM, given: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The rows of the fit, with responses drawn from it; shares of trials are drawn of as many."""
    beside = {name: given[name] for name in ("offset", "exposure") if name in given}
    unknown = [name for name in given if name not in ("data", "y", "offset", "exposure")]
    X, y = given.get("data"), given.get("y")
    if X is None or y is None or isinstance(y, str) or unknown:
        other = f" and without {', '.join(unknown)}" if unknown else ""
        raise OptionError(
            f"Responses are drawn given rows: bootstrap(X, y, kind='parametric'), with y as an array{other}."
        )
    counts = np.asarray(y)
    if counts.ndim == 2 and model.fitted_.family_object.response == "shares":
        totals = counts.sum(axis=1).astype(np.int64)
        hits = rng.binomial(totals, np.asarray(model.predict(X, kind="response", **beside)))
        return {**given, "y": np.column_stack([hits, totals - hits])}
    return {**given, "y": model.sample(X, rng, **beside)}


def _again(model: GLM) -> GLM:
    """A copy that knows all labels, whichever are drawn."""
    classes, options = model.fitted_.classes, model.get_params(deep=False)
    again = model.clone()
    return again if classes is None or options["states"] is not None else again.set_params(states=list(classes))


def _table(model: GLM, name: object) -> Any:
    if name != "coefficients":
        raise OptionError(f"A GLM has the table 'coefficients', not {name!r}.")
    return model.summary()


def _coefficients(model: GLM) -> Grid:
    table = model.summary()
    # Errors and p values have no sign; the ends of the intervals are no estimates.
    plain = tuple(range(1, len(table.columns)))
    names, values = [name for name, _ in table.rows], [values for _, values in table.rows]
    return matrix_grid("Coefficients", names, table.columns, values, "signed", plain)


def _estimates(model: GLM, level: float = 0.95, node: Hashable = None) -> Estimates:
    """Coefficients with Wald intervals; with a prior they are the MAP, beside those of maximum likelihood."""
    table = or_none(lambda: model.summary(level))
    if table is None:
        return Estimates()
    has_prior = model.get_params(deep=False)["prior"] is not None
    likelihood = or_none(model.likelihood_estimate) if has_prior else None
    intervals = []
    for number, (name, values) in enumerate(table.rows):
        value, low, high = float(values[0]), float(values[-2]), float(values[-1])
        if not np.isfinite([value, low, high]).all():
            continue
        if has_prior:
            mle = None if likelihood is None else finite(likelihood[number])
            intervals.append(Interval(str(name), low, high, mle, value, None))
        else:
            intervals.append(Interval(str(name), low, high, value, None, None))
    alone = has_prior and intervals and all(one.mle is None for one in intervals)
    note = "The likelihood has no maximum, or the rows are no longer at hand: the MAP stands alone." if alone else ""
    return Estimates(tuple(intervals), note)
