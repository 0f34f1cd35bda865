"""Which path a call takes."""

from collections import defaultdict
from collections.abc import Callable

import pytest

from suffice.errors import OptionError
from suffice.kernels import choice


@pytest.fixture(autouse=True)
def _nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_spent", defaultdict(float))
    monkeypatch.delenv("SUFFICE_KERNELS", raising=False)


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
