"""A fit repeated in one process gives the same bits, whatever the process did in between."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.kernels import ahead, choice
from suffice.kernels.junction_tree import KERNEL


@pytest.fixture(autouse=True)
def fresh_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin as a fresh process does where loops are compiled: nothing has been spent on any kernel."""
    before = dict(choice._spent)
    monkeypatch.setattr(ahead, "ready", lambda kernel: True)
    monkeypatch.delenv("SUFFICE_KERNELS", raising=False)
    choice._spent.clear()
    yield
    choice._spent.clear()
    choice._spent.update(before)


def chain_with_gaps(n: int, seed: int = 0, real: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    last = rng.integers(3, size=n)
    for place in range(8):
        keep = rng.random(n) < 0.7
        last = np.where(keep, last, rng.integers(3, size=n))
        gap = rng.random(n) < 0.25
        columns[f"v{place}"] = np.where(gap, np.nan, last)
    if real:
        columns["x"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n) + last)
    return columns


def chain(real: bool = False) -> sf.BayesianNetwork:
    edges = [(f"v{k}", f"v{k + 1}") for k in range(7)] + ([("v7", "x")] if real else [])
    states = {f"v{k}": [0, 1, 2] for k in range(8)}
    return sf.BayesianNetwork(edges, states=states, max_iter=12, tolerance=0.0, random_state=0)


def figures(net: sf.BayesianNetwork) -> tuple[list[bytes], Any]:
    nodes = [net.node(name).parameters().tobytes() for name in net.nodes]
    report = net.report_
    return nodes, (report.history, report.log_likelihood, report.objective, report.certificate.moment_gap)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("real", [False, True], ids=["tables", "mixed"])
def test_a_fit_does_not_depend_on_earlier_work_of_the_process(real: bool) -> None:
    rows = chain_with_gaps(60, real=real)
    first = figures(chain(real).fit(rows))
    choice._spent[KERNEL] += 2 * choice.PRICE  # Other work has paid for the compiled kernel.
    assert choice.use_compiled(KERNEL, 0.0)
    assert figures(chain(real).fit(rows)) == first


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_a_score_of_rows_with_gaps_does_not_depend_on_earlier_work() -> None:
    rows = chain_with_gaps(60)
    net = chain().fit(rows)
    first = net.score(rows)
    choice._spent[KERNEL] += 2 * choice.PRICE
    assert net.score(rows) == first


def test_repeated_work_is_chosen_by_its_size_alone() -> None:
    assert not choice.use_compiled("a kernel", choice.PRICE / 200, calls=100)
    assert choice.use_compiled("a kernel", choice.PRICE / 50, calls=100)
    for _ in range(300):
        assert not choice.use_compiled("a kernel", choice.PRICE / 200, calls=100)
    assert choice._spent["a kernel"] == 0.0
