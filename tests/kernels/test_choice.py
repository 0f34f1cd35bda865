"""Which path a call takes."""

from collections import defaultdict
from collections.abc import Callable

import pytest

from suffice.errors import OptionError
from suffice.kernels import ahead, choice


@pytest.fixture(autouse=True)
def _nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_spent", defaultdict(float))
    monkeypatch.setattr(choice, "_rented", defaultdict(float))
    monkeypatch.delenv("SUFFICE_KERNELS", raising=False)
    monkeypatch.setattr(ahead, "ready", lambda kernel: True)
    monkeypatch.setattr(choice, "_loaded", lambda: False)
    monkeypatch.setattr(choice, "_here", set())


class Machine:
    """One where compiling takes a second, beside the work; `waits` are the kernels that were waited for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.compiled, self.possible = False, True
        self.waits: list[str] = []
        monkeypatch.setattr(ahead, "ready", lambda kernel: self.compiled)
        monkeypatch.setattr(ahead, "begin", lambda kernel: self.possible)
        monkeypatch.setattr(ahead, "seconds", lambda kernel: 1.0)
        monkeypatch.setattr(ahead, "wait", self.waits.append)


def test_numpy_works_as_long_as_compiling_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    with choice.one_path():
        assert [choice.use_compiled("a", 0.25, calls=100) for _ in range(6)] == [False] * 4 + [True] * 2
    assert machine.waits == ["a", "a"]


def test_a_fit_keeps_its_path_whatever_the_compiler_does_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    with choice.one_path():
        assert not choice.use_compiled("a", 0.25, calls=100)
        machine.compiled = True
        with choice.one_path():
            assert not choice.use_compiled("a", 0.25, calls=100)
    with choice.one_path():
        assert choice.use_compiled("a", 0.25, calls=100)
        machine.compiled = False
        assert choice.use_compiled("a", 0.25, calls=100)
    assert not machine.waits


def test_an_answer_for_many_calls_counts_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert not choice.use_compiled("a", 0.009, calls=100, once=True)
    assert choice.use_compiled("a", 0.009, calls=100, once=True)
    assert machine.waits == ["a"]


def test_what_cannot_be_compiled_beside_is_compiled_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    machine.possible = False
    assert choice.use_compiled("a", 1.0)
    assert not machine.waits


def test_what_has_been_spent_goes_on_in_numpy_until_loops_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    assert [choice.use_compiled("a", 0.3) for _ in range(3)] == [False] * 3
    machine.compiled = True
    assert choice.use_compiled("a", 0.3)


def test_where_numba_is_loaded_a_kernel_of_the_same_bits_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_loaded", lambda: True)
    share = choice.LOADED_PRICE / 4
    assert [choice.use_compiled("a", share, exact=True) for _ in range(6)] == [False] * 4 + [True] * 2
    assert not choice.use_compiled("b", 2 * choice.LOADED_PRICE)
    assert not choice.use_compiled("b", choice.LOADED_PRICE, calls=2)


def test_a_small_price_is_paid_for_compiled_kernels_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_loaded", lambda: True)
    machine = Machine(monkeypatch)
    assert not choice.use_compiled("a", 2 * choice.LOADED_PRICE, exact=True)
    machine.compiled = True
    assert choice.use_compiled("a", 2 * choice.LOADED_PRICE, exact=True)


def test_what_this_process_has_compiled_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    Machine(monkeypatch)
    with choice.force("compiled"):
        assert choice.use_compiled("a", 0.0)
    assert choice.use_compiled("a", 2 * choice.PRICE)
    assert not choice.use_compiled("b", 2 * choice.PRICE / 3)


def test_numpy_until_the_price_is_paid() -> None:
    share = choice.PRICE / 4
    assert [choice.use_compiled("a", share) for _ in range(7)] == [False] * 4 + [True] * 3


def test_kernels_pay_for_themselves() -> None:
    assert choice.use_compiled("a", 2 * choice.PRICE)
    assert not choice.use_compiled("b", 0.0)


def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_KERNELS", "numpy")
    assert not choice.use_compiled("a", 1e9)
    monkeypatch.setenv("SUFFICE_KERNELS", "compiled")
    assert choice.use_compiled("a", 0.0)


def test_an_unknown_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_KERNELS", "fast")
    with pytest.raises(OptionError, match=r"SUFFICE_KERNELS is 'fast'; it must be one of auto, numpy, compiled"):
        choice.use_compiled("a", 0.0)


def test_a_forced_path_ends_with_its_block() -> None:
    with choice.force("compiled"):
        with choice.force("numpy"):
            assert not choice.use_compiled("a", 1e9)
        assert choice.use_compiled("a", 0.0)
    assert not choice.use_compiled("a", 0.0)


def test_without_numba_all_work_is_done_by_numpy(fresh_python: Callable[[str], str]) -> None:
    code = """
import sys
sys.modules["numba"] = None
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "numba" else found(name, package)
import numpy as np
from suffice.kernels import choice, counting
with choice.force("compiled"):
    codes = np.array([[0, 1, 1]], np.uint8)
    print(counting.count(codes, counting.plan_counts([2], [(0,)], 3))[0])
"""
    assert fresh_python(code) == "[1 2]\n"


def test_small_work_does_not_load_numba(fresh_python: Callable[[str], str]) -> None:
    code = """
import sys
import numpy as np
from suffice.kernels import coding, counting, moments, patterns
codes = np.arange(5000, dtype=np.uint8).reshape(5, 1000) % 4
families = [(0, 1, 2), (3, 4), (1, 4)]
plan = counting.plan_counts([4] * 5, families, 1000)
for _ in range(3):
    counting.count(codes, plan)
    counting.count(codes, plan, np.ones(1000))
    counting.count_sparse(codes, [4] * 5, (0, 1, 2, 3))
    moments.moment_sums(codes.astype(float))
    moments.column_sums(codes.astype(float), np.ones(1000))
    patterns.distinct_rows(codes, np.ones(1000))
    coding.remap(codes[0], np.arange(4, dtype=np.uint8), 4)
print(*[name for name in ("numba", "llvmlite", "scipy") if name in sys.modules])
"""
    assert fresh_python(code).split() == []
