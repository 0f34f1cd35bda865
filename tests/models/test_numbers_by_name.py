"""Numbers and tables that say what they are of are read by that, never by their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

MARGINS = {"a": pd.Series([60.0, 40.0], index=pd.Index(["n", "y"], name="a")), "c": pd.Series([30.0, 70.0], name="n")}
MARGINS["c"].index = pd.Index(["p", "q"], name="c")


def independent(**options: Any) -> sf.MarkovNetwork:
    return sf.MarkovNetwork([("a",), ("c",)], **options)


def test_a_list_of_named_margins_is_no_table_by_its_places() -> None:
    expected = np.outer([0.6, 0.4], [30.0, 70.0])
    for given in (list(MARGINS.values()), tuple(reversed(MARGINS.values()))):
        fit = independent().fit(table=given)
        assert fit.states("a") == ("n", "y")
        assert fit.fitted_counts_.values == pytest.approx(expected)
    assert independent().fit(list(MARGINS.values())).fitted_counts_.values == pytest.approx(expected)
    rows = pd.DataFrame({"a": list("nnyyny"), "c": list("pqpqqq"), "b": [0, 1, 1, 0, 1, 1]})
    tables = [rows.groupby(names).size() for names in (["a", "c"], ["c", "b"])]
    net = sf.MarkovNetwork([("a", "c"), ("c", "b")])
    by_list, by_rows = net.clone().fit(table=tables), net.clone().fit(rows)
    assert by_list.marginal(("a", "c")).values == pytest.approx(by_rows.marginal(("a", "c")).values)
    with pytest.raises(sf.DataError, match="entry 1 does not name its variables"):
        independent().fit(table=[MARGINS["a"], pd.Series([30.0, 70.0])])
    with pytest.raises(sf.DataError, match="two margins of 'a'"):
        independent().fit(table=[MARGINS["a"], MARGINS["a"]])
    with pytest.raises(sf.DataError, match="No margin holds 'c'"):
        independent().fit(table=[MARGINS["a"]])


def test_a_seed_table_is_no_start() -> None:
    margins = {("a",): MARGINS["a"], ("c",): MARGINS["c"]}
    cells = pd.MultiIndex.from_product([["n", "y"], ["p", "q"]], names=["a", "c"])
    seed = pd.Series([1.0, 2, 3, 4], index=cells)
    table = independent().fit(table=margins).fitted_counts_
    for start in (seed, table, {("a",): MARGINS["a"]}):
        with pytest.raises(sf.OptionError, match="A table of counts holds no parameters"):
            independent(start=start).fit(table=margins)


def test_weights_with_names_are_read_by_their_names() -> None:
    net = independent().fit(table=list(MARGINS.values()))
    named = dict(zip(net.weight_names_, net.weights_.tolist(), strict=True))
    turned = dict(reversed(named.items()))
    forms: list[Any] = [turned, pd.Series(turned)]
    for given in forms:
        assert net.log_partition(given) == pytest.approx(net.log_partition_)
        assert net.with_weights(given).to_joint().values == pytest.approx(net.to_joint().values)
        assert independent(start=given).fit(table=list(MARGINS.values())).n_iter_ <= net.n_iter_
    with pytest.raises(sf.OptionError, match="expected a number for each of"):
        net.with_weights(forms[1][:1])


@pytest.mark.parametrize("family", ["poisson", "multinomial", "ordinal"])
def test_coefficients_to_start_from_are_read_by_their_names(family: Any) -> None:
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    y = np.clip(rng.poisson(np.exp(0.4 * X["x"])), 0, 2)
    fit = sf.GLM(family, tolerance=1e-10).fit(X, y)
    names = list(fit.parameters_.names)
    named = dict(reversed(list(zip(names, np.asarray(fit.parameters_).tolist(), strict=True))))
    with pytest.raises(sf.OptionError, match="expected a number for each of"):
        sf.GLM(family, start={**named, "w": named["z"]}).fit(X, y)
    again = sf.GLM(family, start=named, max_iter=1).fit(X, y)
    assert np.asarray(again.parameters_) == pytest.approx(np.asarray(fit.parameters_), abs=1e-6)
