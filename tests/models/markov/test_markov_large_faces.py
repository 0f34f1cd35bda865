"""Whether the maximum exists in models too large for the whole marginal polytope: what their scopes say."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import suffice as sf
from suffice.models.markov.existence import check_existence
from suffice.solvers import faces


def grid(side: int) -> list[Any]:
    return [tuple(edge) for edge in sf.MarkovNetwork.grid_edges(side, side)]


def spins(edges: Any, rows: int, seed: int) -> dict[Any, Any]:
    rng = np.random.default_rng(seed)
    names = sorted({name for edge in edges for name in edge})
    return {name: rng.choice([-1, 1], rows) for name in names}


def test_a_coupling_that_never_fails_on_a_grid() -> None:
    edges = grid(8)
    rows = spins(edges, 60, 0)
    rows[(0, 1)] = rows[(0, 0)]
    mrf = sf.MarkovNetwork.ising(edges).fit(rows)
    certificate = mrf.report_.certificate
    assert certificate.exists is False
    assert certificate.directions == ("weight of coupling (0, 0), (0, 1) -> inf",)
    assert mrf.query([(0, 0), (0, 1)]).values[[0, 1], [1, 0]].tolist() == [0.0, 0.0]
    assert np.isinf(mrf.standard_errors_).sum() == 3


def test_a_pair_of_states_that_never_meets_on_a_grid() -> None:
    """a = -1 with b = 1 never occurs: fields and coupling run together, -1{a = -1, b = 1} up to a constant."""
    edges = grid(7)
    rows = spins(edges, 120, 1)
    met = (rows[(2, 2)] == -1) & (rows[(2, 3)] == 1)
    rows[(2, 3)] = np.where(met, -1, rows[(2, 3)])
    mrf = sf.MarkovNetwork.ising(edges).fit(rows)
    assert mrf.report_.certificate.exists is False
    names = mrf.weight_names_
    running = {names[k] for k in np.flatnonzero(np.isnan(mrf.weights_))}
    assert running == {"field (2, 2)", "field (2, 3)", "coupling (2, 2), (2, 3)"}
    assert mrf.query([(2, 2), (2, 3)]).values[0, 1] == 0.0


def test_all_pairs_seen_on_a_grid_leave_the_question_open_or_answer_yes() -> None:
    edges = grid(7)
    mrf = sf.MarkovNetwork.ising(edges).fit(spins(edges, 200, 2))
    assert mrf.report_.certificate.exists is not False
    assert mrf.report_.certificate.directions == ()


@pytest.mark.parametrize(("broken", "exists"), [(0, False), (1, True)])
def test_a_tied_coupling_runs_only_if_all_its_places_agree(broken: int, exists: bool) -> None:
    edges = grid(8)
    rows = spins(edges, 60, 3)
    rows = dict.fromkeys(rows, rows[(0, 0)])
    if broken:
        rows[(7, 7)] = -rows[(0, 0)]
    mrf = sf.MarkovNetwork([sf.Feature(edges, lambda x, y: x * y, name="J")]).fit(rows)
    assert mrf.report_.certificate.exists is exists
    assert np.isinf(mrf.weights_).tolist() == [not broken]


def listed_truth(design: Any, seen: Any) -> bool:
    """Whether the mean of the seen states is inside the hull of all: no direction leaves them and lowers others."""
    away = design - design[seen].mean(axis=0)
    others = np.setdiff1d(np.arange(len(design)), seen)
    if not len(others):
        return True
    answer = linprog(
        away[others].sum(axis=0),
        A_ub=away[others],
        b_ub=np.zeros(len(others)),
        A_eq=away[seen],
        b_eq=np.zeros(len(seen)),
        bounds=[(-1, 1)] * design.shape[1],
    )
    return float(answer.fun or 0.0) > -1e-9


def test_what_the_scopes_prove_is_true_of_the_whole(monkeypatch: Any) -> None:
    """Small models judged as if they were large: never a wrong no, and most of the right ones are found."""
    monkeypatch.setattr(faces, "SEEN_CELLS", 0)
    monkeypatch.setattr(faces, "READABLE_CELLS", 0)
    rng = np.random.default_rng(4)
    names = list("abcde")
    cells = np.array(list(itertools.product([-1, 1], repeat=5)))
    found = {True: 0, False: 0, None: 0}
    missed = 0
    for _ in range(120):
        pairs = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.5] or [("a", "b")]
        scopes = [(name,) for name in names if rng.random() < 0.7] + pairs
        tied = rng.random() < 0.3
        product: Any = lambda *x: float(np.prod(x))  # noqa: E731
        terms = [sf.Feature(pairs, product)] if tied else []
        terms += [sf.Feature(scope, product) for scope in scopes if not (tied and len(scope) == 2)]
        network = sf.MarkovNetwork(terms, states={name: [-1, 1] for name in names})
        rows = rng.choice([-1, 1], (rng.integers(2, 14), 5))
        places: Any = [[[names.index(str(name)) for name in place] for place in term.placements] for term in terms]
        columns: Any = [np.sum([cells[:, at].prod(axis=1) for at in each], axis=0) for each in places]
        design = np.stack(columns, axis=1)
        seen = np.unique((rows > 0) @ (1 << np.arange(5)[::-1]))
        model, margins, summary, family = _parts(network, rows, names)
        standing = check_existence(model, margins, summary, None, 1, family)
        truth = listed_truth(design, seen)
        assert standing.exists is not True or truth
        assert standing.exists is not False or not truth
        found[standing.exists] += 1
        missed += standing.exists is None and not truth
        if standing.exists is False:
            moved = design @ standing.direction
            assert np.ptp(moved[seen]) < 1e-7
            assert moved.max() <= moved[seen].max() + 1e-7
            assert moved.min() < moved[seen].max() - 1e-7
    assert found[False] > 50
    assert missed < found[False] / 2


def _parts(network: Any, rows: Any, names: list[str]) -> Any:
    from suffice.models.markov.family import LogLinearFamily
    from suffice.models.markov.log_linear import LogLinear
    from suffice.models.markov.observed import counts_by_scope

    summary = sf.summarize(network, dict(zip(names, rows.T, strict=True)))
    domain = summary.domain.select(network.nodes)
    model = LogLinear(domain, network.terms)
    margins = counts_by_scope(summary, model) / summary.weight
    return model, margins, summary, LogLinearFamily(model)
