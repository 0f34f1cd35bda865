"""Which column is which: laws of one column take one, laws of several match theirs by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

SHARES = pd.DataFrame({"a": [0.1, 0.2, 0.5], "b": [0.9, 0.8, 0.5]})
HEIGHTS = pd.Series([1.0, 2.0, 3.0, 5.0], name="height")

ONE_COLUMN: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "normal": (sf.Normal, [1.0, 2.0, 4.0, 3.0]),
    "exponential": (sf.Exponential, [1.0, 2.0, 4.0, 3.0]),
    "gamma": (sf.Gamma, [1.0, 2.0, 4.0, 3.0]),
    "inverse gamma": (sf.InverseGamma, [1.0, 2.0, 4.0, 3.0]),
    "beta": (sf.Beta, [0.1, 0.4, 0.3, 0.2]),
    "bernoulli": (sf.Bernoulli, [0, 1, 1, 0]),
    "categorical": (sf.Categorical, ["a", "b", "a", "c"]),
    "poisson": (sf.Poisson, [0, 3, 1, 2]),
    "geometric": (sf.Geometric, [0, 3, 1, 2]),
}
EACH = pytest.mark.parametrize(("make", "rows"), ONE_COLUMN.values(), ids=ONE_COLUMN)
TWO_COLUMNS: dict[str, tuple[Callable[[], Any], dict[str, list[Any]]]] = {
    "moments": (sf.MultivariateNormal, {"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 7.0]}),
    "counts": (
        lambda: [sf.statistics.Counts(("a", "b")), sf.statistics.Counts(("a",))],
        {"a": [0, 1, 1], "b": [1, 0, 1]},
    ),
}


def flat(law: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.concatenate([np.ravel(value) for value in law.parameters_.values()])


# -- laws of several columns -----------------------------------------------------------------------------------------


def test_a_dirichlet_scores_columns_by_name() -> None:
    law = sf.Dirichlet().fit(SHARES)
    expected = np.mean(law.log_prob(SHARES[["a", "b"]].to_numpy()))
    assert law.columns_ == ("a", "b")
    assert law.score(SHARES) == pytest.approx(expected, rel=1e-12)
    assert law.score(SHARES[["b", "a"]]) == law.score(SHARES)
    assert law.score(SHARES.assign(c=1.0)) == law.score(SHARES)
    np.testing.assert_array_equal(law.log_prob(SHARES[["b", "a"]]), law.log_prob(SHARES.to_numpy()))
    np.testing.assert_array_equal(law.sufficient_statistics(SHARES[["b", "a"]]), np.log(SHARES[["a", "b"]].to_numpy()))


def test_a_dirichlet_learns_further_columns_by_name() -> None:
    more = pd.DataFrame({"b": [0.3, 0.4], "a": [0.7, 0.6]})
    both = sf.Dirichlet().fit(pd.concat([SHARES, more]))
    parts = sf.Dirichlet().fit(SHARES).partial_fit(more)
    np.testing.assert_allclose(parts.alpha_, both.alpha_, rtol=1e-12)
    np.testing.assert_allclose(parts.unlearn(more).alpha_, sf.Dirichlet().fit(SHARES).alpha_, rtol=1e-10)
    np.testing.assert_allclose(sf.Dirichlet().fit(SHARES).partial_fit(more[["a", "b"]].to_numpy()).alpha_, both.alpha_)


@pytest.mark.parametrize("method", ["score", "partial_fit", "unlearn"])
def test_a_renamed_column_is_an_error_that_names_it(method: str) -> None:
    law = sf.Dirichlet().fit(SHARES)
    with pytest.raises(sf.MissingColumnError, match="'b'"):
        getattr(law, method)(SHARES.rename(columns={"b": "z"}))
    with pytest.raises(sf.MissingColumnError, match="'b'"):
        law.log_prob(SHARES.rename(columns={"b": "z"}))


def test_columns_can_be_declared_and_are_kept() -> None:
    law = sf.Dirichlet(columns=["b", "a"]).fit(SHARES)
    assert law.columns_ == ("b", "a")
    np.testing.assert_allclose(law.alpha_, sf.Dirichlet().fit(SHARES).alpha_[::-1], rtol=1e-10)
    given = sf.Dirichlet([2.0, 3.0], columns=["b", "a"])
    assert given.score(SHARES) == pytest.approx(sf.Dirichlet([3.0, 2.0]).score(SHARES), rel=1e-13)
    assert given.with_natural_parameters([0.0, 1.0]).columns_ == ("b", "a")
    with pytest.raises(sf.OptionError, match="columns is 'a'; expected 2"):
        sf.Dirichlet([2.0, 3.0], columns=["a"])


@pytest.mark.parametrize(
    "law", [sf.Dirichlet(alpha=[1, 2, 3]), sf.MultivariateNormal([0, 0, 0], np.eye(3))], ids=["dirichlet", "normal"]
)
def test_a_given_law_says_how_many_columns_it_has(law: Any) -> None:
    with pytest.raises(sf.OptionError, match=r"describes 3 columns.*have 2: 'a', 'b'"):
        law.score(SHARES)


@pytest.mark.parametrize("make", [sf.Dirichlet, sf.MultivariateNormal])
def test_a_summary_of_other_columns_is_refused(make: Callable[..., Any]) -> None:
    rows = SHARES if make is sf.Dirichlet else SHARES.assign(b=[1.0, 5.0, 2.0])
    law = make().fit(rows)
    assert law.score(sf.summarize(make(), rows)) == law.score(rows)
    for columns in (["b", "a"], ["a", "z"]):
        other = sf.summarize(make(), rows.set_axis(columns, axis=1))
        with pytest.raises(sf.MergeError, match=r"'a', 'b'.*columns="):
            law.score(other)
        with pytest.raises(sf.MergeError, match=r"'a', 'b'.*columns="):
            make(columns=["a", "b"]).fit(other)


# -- laws of one column ----------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(("questions", "table"), TWO_COLUMNS.values(), ids=TWO_COLUMNS)
def test_a_summary_of_two_columns_is_refused(
    make: Callable[[], Any], rows: list[Any], questions: Callable[[], Any], table: dict[str, list[Any]]
) -> None:
    summary = sf.summarize(questions(), table)
    law = make().fit(rows)
    for method in (make().fit, law.fit, law.partial_fit, law.score, law.unlearn):
        with pytest.raises(sf.MergeError, match=r"describes one column.*2: 'a', 'b'"):
            method(summary)


@pytest.mark.parametrize(
    "prior", [sf.NormalInverseGamma(2, 1, 1, 0), sf.Beta(1, 1), sf.Dirichlet(1), sf.Gamma(1, 1)], ids=repr
)
def test_a_prior_of_one_column_refuses_a_summary_of_two(prior: Any) -> None:
    with pytest.raises(sf.MergeError, match=r"one column.*2: 'a', 'b'"):
        prior.posterior(sf.summarize(sf.MultivariateNormal(), TWO_COLUMNS["moments"][1]))


@EACH
def test_a_column_without_a_name_joins_the_one_learned(make: Callable[[], Any], rows: list[Any]) -> None:
    named = pd.Series(rows, name="height")
    whole = make().fit(pd.concat([named, named[:2]]))
    law = make().fit(named).partial_fit(rows[:2])
    np.testing.assert_allclose(flat(law), flat(whole), rtol=1e-12)
    assert law.statistics_ == whole.statistics_
    assert law.score(rows) == law.score(named)
    np.testing.assert_allclose(flat(law.unlearn(rows[:2])), flat(make().fit(named)), rtol=1e-10)
    later = make().fit(rows).partial_fit(named[:2])
    np.testing.assert_allclose(flat(later), flat(whole), rtol=1e-12)


def test_two_names_are_an_error_with_a_remedy() -> None:
    law = sf.Normal().fit(HEIGHTS)
    weights = pd.Series([4.0, 5.0], name="weight")
    for method in (law.partial_fit, law.unlearn, law.score):
        with pytest.raises(sf.MergeError, match=r"'height'.*'weight'.*columns='height'"):
            method(weights)
    both = law.partial_fit(weights, columns="height")
    assert both.mean_ == pytest.approx(20 / 6, rel=1e-15)


def test_a_fit_starts_afresh_under_any_name() -> None:
    law = sf.Normal().fit(HEIGHTS).fit(pd.Series([4.0, 6.0], name="weight"))
    assert (law.mean_, law.statistics_.domain.names) == (5.0, ("weight",))
    assert law.fit([1.0, 3.0]).statistics_.domain.names == ("x",)
    several = sf.Dirichlet().fit(SHARES).fit(SHARES.set_axis(["c", "d"], axis=1))
    assert several.columns_ == ("c", "d")
