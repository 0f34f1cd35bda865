"""A sequence of nested models, each tested against the one before."""

from __future__ import annotations

import math
from collections.abc import Sequence

from suffice.errors import OptionError
from suffice.fitting.estimator import Estimator
from suffice.fitting.parameter_table import NumberTable
from suffice.models.nesting import likelihood_ratio_test


def likelihood_ratio_tests(*models: Estimator, names: Sequence[str] | None = None) -> NumberTable:
    """Test each of some given models against the one before, in which it is nested: R's ``anova`` of several fits.

    Args:
        models: fits of one kind to the same rows, from the smallest to the largest, as `likelihood_ratio_test` takes.
        names: what to call them; their class and number unless given.

    Returns:
        A row for each model: parameters, and the statistic, degrees of freedom and p value of its test against the row
        above. The p values are not corrected for their number.
    """
    if len(models) < 2:
        raise OptionError(f"likelihood_ratio_tests takes two models or more, the smallest first; found {len(models)}.")
    titles = [f"{type(model).__name__} {number}" for number, model in enumerate(models, 1)] if names is None else names
    if len(titles) != len(models):
        raise OptionError(f"names has {len(titles)} names for {len(models)} models; expected one for each.")
    rows, marks = [(str(titles[0]), (float(models[0].n_params_), *(math.nan,) * 4))], [""]
    for title, smaller, larger in zip(titles[1:], models, models[1:], strict=False):
        test = likelihood_ratio_test(smaller, larger)
        rest = math.nan if test.df_rest is None else test.df_rest
        rows.append((str(title), (float(larger.n_params_), test.statistic, test.df, rest, test.p_value)))
        marks.append(", ".join(word for word in (test.name if test.name != "chi2" else "", test.note) if word))
    head = (("likelihood ratios", "each model against the one above"),)
    columns = ("parameters", "statistic", "df", "df of the rest", "p value")
    return NumberTable(head, columns, tuple(rows), tuple(marks) if any(marks) else ())
