"""What Markov networks learn from: rows, contingency tables, margins, summaries; and that none of it matters."""

import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from certificates import slope_of
from suffice.kernels import choice

CLIQUES = [("A", "B"), ("B", "C"), ("C", "A")]
STATES = {"A": ["no", "yes"], "B": [0, 1, 2], "C": [False, True]}
COUNTS = np.array([4, 1, 2, 2, 7, 3, 2, 2, 5, 1, 1, 6], float).reshape(2, 3, 2)


def expand(counts: Any, states: Any = STATES) -> Any:
    """Rows with these counts."""
    rows = []
    for cell, n in np.ndenumerate(counts):
        rows += [{name: states[name][code] for name, code in zip(states, cell, strict=True)}] * int(n)
    return rows


def as_table(counts: Any = COUNTS, states: Any = STATES) -> Any:
    return sf.Table(sf.Domain([sf.Variable.discrete(n, s) for n, s in states.items()]), counts)


class NamedAxes:
    """An array as xarray has it: dims and coords."""

    dims = ("C", "A", "B")
    coords: ClassVar[dict[str, Any]] = {name: np.array(STATES[name]) for name in ("C", "A", "B")}
    values = COUNTS.transpose(2, 0, 1)
    shape = values.shape


SERIES = as_table().to_series()
FRAME = pd.DataFrame(expand(COUNTS))
LONG = SERIES.rename("n").reset_index()
FORMS = {
    "rows as dicts": (expand(COUNTS), {}),
    "frame": (FRAME, {}),
    "weighted rows": (LONG, {"sample_weight": "n"}),
    "table": (as_table(), {}),
    "series": (SERIES, {}),
    "series turned": (SERIES.reorder_levels(["C", "A", "B"]).sample(frac=1.0, random_state=0), {}),
    "indexed frame": (SERIES.to_frame("count"), {}),
    "array with names": (COUNTS, {"columns": ["A", "B", "C"]}),
    "named axes": (NamedAxes(), {}),
    "margins": ({c: as_table().marginal(c) for c in CLIQUES}, {}),
    "margins as arrays": ({c: as_table().marginal(c).values for c in CLIQUES}, {}),
    "margins as series": ({c: as_table().marginal(c).to_series() for c in CLIQUES}, {}),
    "wider table": (as_table() * as_table(np.array([0.25, 0.75]), {"D": [1, 2]}), {}),
}
REFERENCE = sf.MarkovNetwork(CLIQUES, states=STATES, solver="newton").fit(as_table())


@pytest.mark.parametrize(("data", "options"), FORMS.values(), ids=FORMS)
def test_every_form_of_the_same_data_gives_the_same_law(data: Any, options: Any) -> None:
    mrf = sf.MarkovNetwork(CLIQUES, states=STATES, solver="newton").fit(data, **options)
    np.testing.assert_allclose(mrf.weights_, REFERENCE.weights_, atol=1e-12)
    assert mrf.report_.weight == pytest.approx(36)
    assert mrf.report_.log_likelihood == pytest.approx(REFERENCE.report_.log_likelihood, rel=1e-12)


@pytest.mark.parametrize("name", ["rows as dicts", "frame", "series", "table", "indexed frame"])
def test_states_need_not_be_declared(name: Any) -> None:
    mrf = sf.MarkovNetwork(CLIQUES).fit(FORMS[name][0])
    assert mrf.to_joint().allclose(REFERENCE.to_joint(), rtol=1e-8)


def test_a_summary_is_enough_and_summaries_add() -> None:
    rows = expand(COUNTS)
    network = sf.MarkovNetwork(CLIQUES, solver="newton")
    total = sum(sf.summarize(network, part) for part in (rows[:3], rows[3:20], rows[20:]))
    mrf = sf.MarkovNetwork(CLIQUES, solver="newton").fit(total)
    assert mrf.to_joint().allclose(REFERENCE.to_joint(), rtol=1e-12)
    pairs = sf.summarize([sf.Counts(("B", "A")), sf.Counts(("C", "B")), sf.Counts(("A", "C"))], rows)
    assert sf.MarkovNetwork(CLIQUES, solver="newton").fit(pairs).to_joint().allclose(REFERENCE.to_joint(), rtol=1e-12)
    with pytest.raises(sf.MergeError, match="does not count 'B', 'C' together"):
        sf.MarkovNetwork(CLIQUES).fit(sf.summarize([sf.Counts(("A", "B")), sf.Counts(("C",))], rows))
    with pytest.raises(sf.MergeError, match="needs 'C'"):
        sf.MarkovNetwork(CLIQUES).fit(sf.summarize([sf.Counts(("A", "B"))], rows))


def test_counts_need_not_be_whole_and_only_their_shares_matter() -> None:
    mrf = sf.MarkovNetwork(CLIQUES, solver="newton").fit(as_table(COUNTS / 7.3))
    assert mrf.to_joint().allclose(REFERENCE.to_joint(), rtol=1e-9)
    assert mrf.report_.weight == pytest.approx(36 / 7.3)
    assert mrf.deviance_ == pytest.approx(REFERENCE.deviance_ / 7.3, rel=1e-9)


def test_sparse_tables_of_many_variables() -> None:
    """Twenty binary variables in a ring: a million cells, of which the rows use 300."""
    names = [f"v{i}" for i in range(20)]
    ring = list(zip(names, [*names[1:], names[0]], strict=True))
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 2, 300) for name in names}
    mrf = sf.MarkovNetwork(ring).fit(rows)
    for a, b in ring[:3]:
        joint = np.histogram2d(rows[a], rows[b], bins=2)[0] / 300
        np.testing.assert_allclose(mrf.marginal((a, b)).values, joint, atol=1e-9)
    assert mrf.df_ == 2**20 - 1 - 40
    with pytest.raises(sf.EstimateError, match="too many"):
        mrf.deviance_  # noqa: B018


# -- what is a table, and what is wrong with it ----------------------------------------------------------------------


def test_an_array_of_two_axes_holds_rows() -> None:
    mrf = sf.MarkovNetwork([("A", "B")]).fit(np.array([[0, 1], [0, 1], [1, 0]] * 17), columns=["A", "B"])
    assert mrf.marginal(("A", "B")).at(A=0, B=1) == pytest.approx(2 / 3)
    table = sf.MarkovNetwork([("A", "B")]).fit({("A", "B"): np.array([[0, 1], [3, 4]])})
    assert table.marginal(("A", "B")).at(A=1, B=0) == pytest.approx(3 / 8)


def test_names_that_are_tuples_are_columns() -> None:
    grid = sf.MarkovNetwork.grid(1, 2)
    mrf = grid.fit({(0, 0): [0, 0, 1], (0, 1): [0, 1, 1]})
    np.testing.assert_allclose(mrf.marginal([(0, 0), (0, 1)]).values, [[1 / 3, 1 / 3], [0, 1 / 3]], atol=1e-12)


@pytest.mark.parametrize(
    ("data", "options", "error", "message"),
    [
        (as_table(-COUNTS), {}, sf.DataError, "expected counts, finite and at least 0"),
        (COUNTS, {"columns": ["A", "B"]}, sf.DataError, "3 axes"),
        (COUNTS, {}, sf.DataError, "one name for each axis"),
        (COUNTS[:, :2], {"columns": ["A", "B", "C"]}, sf.DataError, "'B' has 2 cells"),
        (as_table().marginal(("A", "B")), {}, sf.MissingColumnError, "also needs 'C'"),
        (as_table(), {"sample_weight": [1.0]}, sf.OptionError, "sample_weight"),
        (SERIES.rename_axis([None, "B", "C"]), {}, sf.DataError, "name every level"),
        (SERIES.to_frame("n").assign(A=1), {}, sf.DataError, "rows or a table"),
        (SERIES.to_frame("n").assign(m=1), {}, sf.DataError, "single column"),
        ({("A", "B"): COUNTS}, {}, sf.DataError, "3 axes"),
        ({("A", "B"): COUNTS.sum(2)}, {}, sf.DataError, r"No margin holds \('B', 'C'\)"),
        ({c: as_table(COUNTS * 0).marginal(c) for c in CLIQUES}, {}, sf.DataError, "add up to 0"),
        (as_table(COUNTS * 0), {}, sf.EstimateError, "no rows"),
        ([*expand(COUNTS)[:5], {"A": "maybe", "B": 0, "C": True}], {}, sf.UnknownStateError, "maybe"),
        ([*expand(COUNTS)[:5], {"A": None, "B": 0, "C": True}], {}, sf.MissingValueError, "A.*missing='em'"),
    ],
)
def test_data_that_cannot_be_used(data: Any, options: Any, error: Any, message: Any) -> None:
    with pytest.raises(error, match=message):
        sf.MarkovNetwork(CLIQUES, states=STATES, missing="raise").fit(data, **options)


def test_real_columns_need_states() -> None:
    with pytest.raises(sf.OptionError, match="needs states"):
        sf.MarkovNetwork([("A", "B")]).fit({"A": [0.5, 1.5], "B": [0, 1]})


def test_margins_that_disagree_are_named() -> None:
    """Tables printed with three digits: totals .995, .997, .997, and different single margins once normalised."""
    printed = {
        (1, 2): np.array([[0.249, 0.002, 0.311], [0.017, 0.024, 0.015], [0.029, 0.348, 0.0]]),
        (1, 3): np.array([[0.136, 0.118, 0.309], [0.003, 0.029, 0.025], [0.348, 0.014, 0.015]]),
        (2, 3): np.array([[0.008, 0.014, 0.274], [0.351, 0.024, 0.0], [0.129, 0.123, 0.074]]),
    }
    cliques = list(printed)
    with pytest.raises(sf.DataError, match=r"\(1, 2\) and \(1, 3\) have different totals: 0.995 and 0.997"):
        sf.MarkovNetwork(cliques).fit(printed)
    normal = {clique: values / values.sum() for clique, values in printed.items()}
    with pytest.raises(sf.DataError, match=r"\(1, \d\) and \(\d, 3\) disagree .* at \d=\d"):
        sf.MarkovNetwork(cliques).fit(normal)
    with pytest.warns(sf.ConvergenceWarning), pytest.warns(sf.SufficeWarning, match="different totals"):
        mrf = sf.MarkovNetwork(cliques, on_inconsistent="warn", max_iter=200).fit(printed)
    certificate = mrf.report_.certificate
    assert not mrf.converged_
    assert certificate.exists is False
    assert certificate.value_gap is None
    assert "different totals" in certificate.directions[0]
    # The margins never match at the same time, but all are near: the printed digits are off by up to a thousandth.
    assert 1e-4 < slope_of(certificate) < 2e-3
    lbfgs = sf.MarkovNetwork(cliques, on_inconsistent="warn", solver="lbfgs")
    with pytest.warns(sf.SufficeWarning), pytest.raises(sf.OptionError, match="margins that disagree"):
        lbfgs.fit(printed)
    with pytest.warns(sf.SufficeWarning, match="different totals"):
        with_prior = sf.MarkovNetwork(cliques, on_inconsistent="warn", prior=sf.Normal(variance=100.0)).fit(printed)
    assert with_prior.converged_


def test_margins_that_agree_in_pairs_and_belong_to_no_table() -> None:
    """Three fair coins cannot differ pairwise all the time."""
    apart = np.array([[0.0, 0.5], [0.5, 0.0]])
    with pytest.raises(sf.EstimateError, match=r"No joint distribution"):
        sf.MarkovNetwork(CLIQUES).fit(dict.fromkeys(CLIQUES, apart))


def test_wide_models_are_refused_before_any_work() -> None:
    names = [f"v{i}" for i in range(60)]
    network = sf.MarkovNetwork(list(itertools.combinations(names, 2)))
    with pytest.raises(sf.SizeError, match=r"60 variables .* cells .*fewer joined variables"):
        network.fit({name: [0, 1, 1] for name in names})
    with pytest.raises(sf.SizeError, match="the limit is 100 B"):
        sf.MarkovNetwork(CLIQUES, memory_limit=100).fit(expand(COUNTS))


# -- rows come and go ------------------------------------------------------------------------------------------------


def test_a_fitted_network_does_not_hold_its_rows() -> None:
    """Four columns of forty states: 2.5 million joint states; what is kept are the counts of the pairs."""
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 40, 600) for name in "ABCD"}
    for name in rows:
        rows[name][:40] = np.arange(40)
    ring = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]
    mrf = sf.MarkovNetwork(ring, prior=sf.Normal(variance=1.0)).fit(rows)
    assert set(mrf.statistics_.answers) == {sf.Counts(pair) for pair in ring}
    twice = sf.MarkovNetwork(ring, prior=sf.Normal(variance=1.0)).fit(rows).partial_fit(rows)
    assert twice.report_.rows == 1200
    back = twice.unlearn(rows)
    np.testing.assert_allclose(back.weights_, mrf.weights_, atol=1e-8)


def test_partial_fit_and_unlearn() -> None:
    rows = expand(COUNTS)
    mrf = sf.MarkovNetwork(CLIQUES, states=STATES, solver="newton")
    mrf.partial_fit(rows[:10]).partial_fit(rows[10:])
    np.testing.assert_allclose(mrf.weights_, REFERENCE.weights_, atol=1e-12)
    mrf.partial_fit(rows[5:15]).unlearn(rows[5:15])
    np.testing.assert_allclose(mrf.weights_, REFERENCE.weights_, atol=1e-12)
    mrf.partial_fit(as_table()).unlearn(as_table())
    np.testing.assert_allclose(mrf.weights_, REFERENCE.weights_, atol=1e-12)
    with pytest.raises(sf.MergeError):
        mrf.unlearn([{"A": "no", "B": 0, "C": False}] * 30)
    np.testing.assert_allclose(mrf.weights_, REFERENCE.weights_, atol=1e-12)


@st.composite
def data_sets(draw: Any) -> Any:
    """A structure over four variables, counts that are all positive, and one permutation of everything."""
    cards = draw(st.lists(st.integers(1, 3), min_size=4, max_size=4))
    names = ["w", "x", "y", "z"]
    sizes = st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple)
    cliques = draw(st.lists(sizes, min_size=1, max_size=4))
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, cards).astype(float)
    return names, cards, cliques, counts, rng


def law(mrf: Any, names: Any, states: Any) -> Any:
    """The joint law with axes in this order of variables and states."""
    table = mrf.marginal(names)
    values = table.values
    for axis, name in enumerate(names):
        values = values.take([table.states[name].index(s) for s in states[name]], axis=axis)
    return values


@settings(max_examples=25)
@given(data_sets())
def test_order_does_not_matter(case: Any) -> None:
    """Rows, columns, states, cliques and axes in another order: the same law."""
    names, cards, cliques, counts, rng = case
    states = {n: list(range(k)) for n, k in zip(names, cards, strict=True)}
    used = [n for n in names if any(n in c for c in cliques)]
    rows = expand(counts, states)
    first = sf.MarkovNetwork(cliques, states={n: states[n] for n in used}).fit(rows)
    turned = [tuple(rng.permutation(list(c)).tolist()) for c in cliques]
    rng.shuffle(turned)
    shuffled = {n: rng.permutation(states[n]).tolist() for n in rng.permutation(used).tolist()}
    rng.shuffle(rows)
    columns = {n: [row[n] for row in rows] for n in rng.permutation(names).tolist()}
    second = sf.MarkovNetwork(turned, states=shuffled).fit(columns)
    np.testing.assert_allclose(law(first, used, states), law(second, used, states), atol=1e-8)
    assert first.n_params_ == second.n_params_
    assert first.deviance_ == pytest.approx(second.deviance_, abs=1e-7)


@settings(max_examples=15)
@given(data_sets())
def test_weights_are_repetitions_and_chunks_are_the_whole(case: Any) -> None:
    names, cards, cliques, counts, rng = case
    states = {n: list(range(k)) for n, k in zip(names, cards, strict=True)}
    network = sf.MarkovNetwork(cliques, states={n: states[n] for n in names}, solver="newton-cg")
    rows = expand(counts, states)
    cells = expand(np.ones_like(counts), states)
    cut = int(rng.integers(1, len(rows) + 1))
    # Loops that a process begins to use between two fits would change last bits.
    with choice.force("numpy"):
        whole = network.clone().fit(rows)
        weighted = network.clone().fit(cells, sample_weight=counts.ravel())
        parts = network.clone().fit(sum(sf.summarize(network, part) for part in (rows[:cut], rows[cut:]) if part))
    for other in (weighted, parts):
        np.testing.assert_array_equal(other.weights_, whole.weights_)
    observed = {c: as_table(counts / counts.sum(), states).marginal(c).values for c in cliques}
    for clique, values in observed.items():
        np.testing.assert_allclose(whole.marginal(list(clique)).values, values, atol=1e-8)


@settings(max_examples=15)
@given(data_sets())
def test_the_likelihood_is_the_largest(case: Any) -> None:
    """No other law of the model does better: a hundredth of a step in any direction loses."""
    names, cards, cliques, counts, rng = case
    states = {n: list(range(k)) for n, k in zip(names, cards, strict=True)}
    network = sf.MarkovNetwork(cliques, states=states, solver="newton")
    best = network.clone().fit(as_table(counts, states))
    rows = expand(counts, states)
    for _ in range(3):
        moved = network.with_weights(best.weights_ + rng.normal(0, 0.01, len(best.weights_)))
        assert moved.score_samples(rows).sum() <= best.report_.log_likelihood + 1e-9
    assert best.score_samples(rows).sum() == pytest.approx(best.report_.log_likelihood, rel=1e-10)
    assert math.isfinite(best.report_.certificate.moment_gap)
