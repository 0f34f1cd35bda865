"""Run tests under the lowest versions that `pyproject.toml` allows, and under the newest on every Python that is here.

    python tools/check_versions.py                       the lowest on the oldest Python, the newest on all others
    python tools/check_versions.py --only lowest         one of them: lowest, 3.11, 3.12, 3.13, 3.14
    python tools/check_versions.py --all                 the whole suite in place of the tests that touch most packages

An environment for each is made in a temporary folder by `uv`, which is taken from the PATH or installed from the
package index. Interpreters are looked for on the PATH and among those of pyenv; one that is not here is named and
skipped. The exit code is 1 if tests failed anywhere.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOWEST = "lowest"
EXTRAS = "all,test"
#: Where other packages are met: files, frames, engines, compiled loops, the command, plots, and figures of each model.
SMOKE = (
    *("tests/sources", "tests/cli/test_start.py", "tests/cli/test_mistakes.py", "tests/views"),
    *("tests/kernels/test_jit.py", "tests/kernels/test_moments.py", "tests/fuzz", "tests/test_storage.py"),
    *("tests/test_import_cost.py", "tests/families/test_extreme_values.py", "tests/models/glm/test_glm_fit.py"),
)


def main() -> int:
    """Make the environments one after another, run the tests in each, and say how each ended."""
    parser = argparse.ArgumentParser(description="Tests under the lowest and the newest versions.")
    parser.add_argument("--only", action="append", choices=(LOWEST, *PYTHONS))
    parser.add_argument("--all", action="store_true", help="the whole suite")
    parser.add_argument("tests", nargs="*", help="tests in place of the usual ones")
    asked = parser.parse_args()
    tests = asked.tests or (("tests",) if asked.all else SMOKE)
    ended: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        uv = find_uv(Path(folder))
        for name in asked.only or (LOWEST, *PYTHONS):
            python = find_python(PYTHONS[0] if name == LOWEST else name)
            if python is None:
                ended[name] = "skipped: there is no such interpreter here"
                continue
            print(f"--- {name}: {python}", flush=True)
            ended[name] = run(uv, Path(folder) / name, python, lowest=name == LOWEST, tests=tests)
    for name, words in ended.items():
        print(f"{name:8} {words}")
    return int(any(words.startswith("failed") for words in ended.values()))


def find_uv(folder: Path) -> str:
    """The command `uv`, installed into the folder where it is not on the PATH."""
    found = shutil.which("uv")
    if found is None:
        venv.create(folder / "uv", with_pip=True)
        binaries = folder / "uv" / ("Scripts" if sys.platform == "win32" else "bin")
        subprocess.run([str(binaries / "python"), "-m", "pip", "install", "--quiet", "uv"], check=True)
        found = str(binaries / "uv")
    return found


def find_python(version: str) -> str | None:
    """An interpreter of this version: this one, one of the PATH, or the last of pyenv."""
    if sys.version.startswith(f"{version}."):
        return sys.executable
    pyenv = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(pyenv[-1]) if pyenv else shutil.which(f"python{version}")


def run(uv: str, place: Path, python: str, *, lowest: bool, tests: tuple[str, ...] | list[str]) -> str:
    """Install and test; how it ended, in a few words."""
    subprocess.run([uv, "venv", "--quiet", "--python", python, str(place)], check=True)
    own = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    choice = ["--resolution", "lowest-direct"] if lowest else []
    installed = [uv, "pip", "install", "--quiet", "--python", str(own), *choice, f"{ROOT}[{EXTRAS}]"]
    if subprocess.run(installed).returncode:
        return "failed: the packages cannot be installed together"
    subprocess.run([uv, "pip", "list", "--quiet", "--python", str(own)], check=True)
    command = [str(own), "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", *tests]
    code = subprocess.run(command, cwd=ROOT).returncode
    return "passed" if code == 0 else f"failed: pytest ended with {code}"


if __name__ == "__main__":
    sys.exit(main())
