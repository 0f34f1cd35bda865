"""Compiling ahead."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from suffice import warmup
from suffice.errors import MissingExtraError
from suffice.kernels import choice


def test_every_kernel_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    warmup.main()
    lines = capsys.readouterr().out.splitlines()
    names = [call.name for call in warmup.calls()]
    assert len(set(names)) == len(names)
    assert [re.fullmatch(r"(.*?) +\d+\.\d\d s", line).group(1) for line in lines] == [*names, "all kernels"]  # type: ignore[union-attr]


LATER = """
import numpy as np
from suffice import warmup
from suffice.kernels import choice, coding, counting, moments, patterns
from suffice.kernels.compiled import coding as a, counting as b, moments as c, patterns as d

def specialisations():
    loops = [loop for module in (a, b, c, d) for loop in vars(module).values() if hasattr(loop, "signatures")]
    return sum(len(loop.signatures) for loop in loops)

rng = np.random.default_rng(0)
def locked(array):
    array.flags.writeable = False
    return array

with choice.force("compiled"):
    for call in warmup.calls():
        call.run()
    before = specialisations()
    for weights in (None, locked(rng.random(70_000)), rng.random(140_000)[::2]):
        for dtype in (np.uint8, np.uint16, np.uint32):
            codes = locked(rng.integers(0, 200, (4, 70_000)).astype(dtype))
            plan = counting.plan_counts([200] * 4, [(), (0,), (0, 1), (2, 1), (0, 1, 3)], 70_000)
            counting.count(codes, plan, weights, threads=2)
            counting.count_sparse(codes, [200] * 4, (0, 1, 2, 3), weights)
        columns = locked(rng.normal(size=(5, 70_000)))
        moments.moment_sums(columns, weights, threads=2)
        moments.column_sums(columns[:, ::-1], weights)
        patterns.distinct_rows(columns, weights)
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        coding.remap(locked(np.zeros(5, dtype)), locked(np.zeros(3, np.uint8)), 3, out=np.empty(5, np.uint16))
print(specialisations() - before)
"""


def test_nothing_is_left_to_compile_after_the_warm_up(fresh_python: Callable[[str], str]) -> None:
    assert fresh_python(LATER) == "0\n"


def test_without_numba_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "numba_installed", lambda: False)
    with pytest.raises(MissingExtraError, match="Numba"):
        warmup.main()


def test_every_name_of_a_choice_is_warmed_up() -> None:
    """What is compiled beside is asked for by the name under which NumPy or compiled is decided."""
    warmed = {call.kernel for call in warmup.calls()}
    literal = re.compile(r'use_compiled\(\s*"([^"]+)"')
    asked = set()
    for path in Path(choice.__file__).parent.glob("*.py"):
        asked |= set(literal.findall(path.read_text(encoding="utf-8")))
        asked |= set(re.findall(r'^KERNEL = "([^"]+)"', path.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(asked) > 12
    assert asked <= warmed
    assert {f"count uint{bits} {kind}" for bits in (8, 16, 32) for kind in ("rows", "weights")} <= warmed
    assert {f"remap uint{source} uint{target}" for source in (8, 16, 32, 64) for target in (8, 16, 32)} <= warmed
