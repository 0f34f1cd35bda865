"""Proportional fitting that goes wrong in other libraries: when it stops, and what it then says.

Each test is named after what goes wrong elsewhere; the docstring says where it was reported.
"""

import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf
from certificates import slope_of

CLIQUES = [("a", "b"), ("b", "c"), ("a", "c")]


def margins_of(table: np.ndarray) -> dict[tuple[str, ...], np.ndarray]:
    """The two-way margins of a table over a, b, c."""
    return {("a", "b"): table.sum(2), ("b", "c"): table.sum(0), ("a", "c"): table.sum(1)}


def off(network: sf.MarkovNetwork, margins: dict[tuple[str, ...], np.ndarray]) -> dict[tuple[str, ...], float]:
    """The largest difference of each margin of the law from its observed share."""
    return {
        clique: float(np.abs(network.marginal(clique).values - table / table.sum()).max())
        for clique, table in margins.items()
    }


def fit(margins: dict[tuple[str, ...], np.ndarray], **options: Any) -> sf.MarkovNetwork:
    states = {name: [0, 1, 2] for name in "abc"}
    return sf.MarkovNetwork(CLIQUES, states=states, solver="ipf", **options).fit(margins)


def dense() -> np.ndarray:
    return np.random.default_rng(4).integers(1, 40, (3, 3, 3)).astype(float)


def slow() -> np.ndarray:
    """Strong interaction in every pair, so that a sweep brings little."""
    at = np.indices((3, 3, 3))
    agree = sum((at[i] == at[j]).astype(float) for i, j in ((0, 1), (1, 2), (0, 2)))
    return np.asarray(np.exp(3.0 * agree)) + np.random.default_rng(0).random((3, 3, 3))


def test_only_the_last_margin_is_checked() -> None:
    """ipfn#4: after a sweep the last margin is right whatever the others are; all of them have to be looked at."""
    margins = margins_of(slow())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        early = fit(margins, max_iter=1)
    last = min(off(early, margins).values())
    assert last < 1e-12 < 1e-4 < max(off(early, margins).values())
    assert not early.report_.converged
    assert any("ConvergenceWarning" in type(w.message).__name__ for w in caught)
    assert early.report_.certificate.slope == pytest.approx(max(off(early, margins).values()), rel=1e-9)
    assert max(off(fit(margins), margins).values()) < 1e-10


def test_a_table_that_has_its_margins_already_is_changed() -> None:
    """ipfn#4, #22: a start that fits stops after one sweep and stays as it is, to rounding."""
    margins = margins_of(dense())
    first = fit(margins, tolerance=1e-13)
    again = fit(margins, start=first.weights_)
    assert again.report_.converged
    assert again.report_.iterations <= 1
    assert max(off(again, margins).values()) <= 1e-12
    everything = ("a", "b", "c")
    np.testing.assert_allclose(again.marginal(everything).values, first.marginal(everything).values, atol=1e-12, rtol=0)


def test_a_stall_counts_as_convergence() -> None:
    """ipfn#12, #22: margins that no table has make the error stand still; that is not a fit."""
    margins = margins_of(dense())
    margins[("b", "c")] = margins[("b", "c")][:, [1, 0, 2]]  # The margin of c disagrees with the one in (a, c).
    with pytest.raises(sf.DataError, match="'c'"):
        fit(margins)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forced = fit(margins, on_inconsistent="warn", max_iter=200)
    assert not forced.report_.converged
    assert forced.report_.certificate.exists is False
    assert slope_of(forced.report_.certificate) > 1e-3
    assert max(off(forced, margins).values()) > 1e-3


def test_the_rival_says_that_a_stall_has_converged() -> None:
    """The defect itself, as far as it is still there: ipfn calls a table converged that misses a margin by far."""
    ipfn = pytest.importorskip("ipfn.ipfn")
    margins = margins_of(dense())
    margins[("b", "c")] = margins[("b", "c")][:, [1, 0, 2]]
    dimensions = [[0, 1], [1, 2], [0, 2]]
    start = np.ones((3, 3, 3))
    found, converged = ipfn.ipfn(start, list(margins.values()), dimensions, verbose=1).iteration()
    missed = max(np.abs(margins_of(found)[clique] / table - 1.0).max() for clique, table in margins.items())
    assert (converged, missed > 0.01) == (1, True)
