"""One copy of the package for the tests and for every process they start; Hypothesis without a clock."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Several folders have fixtures of their own, and files of one name cannot be collected for their examples.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

# Processes started by a test (the command, a fresh interpreter, cluster workers) import the same files as the tests.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
# No window system is needed for plots.
os.environ.setdefault("MPLBACKEND", "agg")

# A first call may compile a kernel, and a busy machine is slow: neither is a failure of the property under test.
settings.register_profile("suffice", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# On a build machine the examples are the same in every run, and nothing is stored.
settings.register_profile("suffice-ci", settings.get_profile("suffice"), derandomize=True, database=None)
settings.load_profile("suffice-ci" if os.environ.get("CI") else "suffice")


@pytest.fixture(scope="session", autouse=True)
def begin_beside() -> Iterator[Callable[[str], bool]]:
    """Loops are compiled in the process that needs them, so that no other one decides which path a fit takes.

    Last bits differ between the paths, and many tests compare bits. The value is what asks for another process.
    """
    from suffice.kernels import ahead

    begin = ahead.begin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahead, "begin", lambda kernel: False)
        patch.setattr(ahead, "SAY_AFTER", 3600.0)
        yield begin


@pytest.fixture
def fresh_python(tmp_path: Path) -> Callable[[str], str]:
    """Run code in a new interpreter, in an empty folder and with warnings as errors; return what it printed."""

    def run(code: str) -> str:
        command = [sys.executable, "-W", "error", "-c", code]
        answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    return run
