"""The decorator of compiled loops, and what keeps its cache honest."""

import ast
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from suffice.errors import SufficeWarning
from suffice.kernels import ahead, compiled, jit

MODULES = sorted(path for path in Path(compiled.__path__[0]).glob("*.py") if path.stem != "__init__")


# Numba's cache does not see the options of a decorator. If one of these changes, give the decorator another name: the
# files that use it change with it, and what users have cached of them is compiled again.
OPTIONS = {
    "kernel": {"nogil": True, "boundscheck": False, "error_model": "numpy"},
    "fused": {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": {"contract"}},
    "reordered": {
        "nogil": True,
        "boundscheck": False,
        "error_model": "numpy",
        "fastmath": {"contract", "reassoc", "nsz"},
    },
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_decorator_has_the_options_of_its_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def njit(**options: Any) -> Callable[..., Any]:
        given.update(options)
        return lambda loop: loop

    monkeypatch.setattr(numba, "njit", njit)
    getattr(jit, name)(plus_one)
    assert given == {"cache": True, **OPTIONS[name]}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_file_of_loops_takes_only_decorators_from_the_package(path: Path) -> None:
    taken = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            taken += [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            taken += [alias.name for alias in node.names]
    # Types are read by people and by mypy, never by Numba.
    own = {name for name in taken if name.startswith((".", "suffice")) and "suffice.array_types" not in name}
    assert own <= {f"suffice.kernels.jit.{name}" for name in OPTIONS}


def plus_one(x: int) -> int:
    return x + 1


def test_a_loop_compiles_and_runs() -> None:
    loop = jit.kernel(plus_one)
    assert loop(2) == 3
    assert loop.targetoptions["nogil"]  # type: ignore[attr-defined]


def test_without_a_place_for_the_cache_it_warns_once_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def no_locator(*loops: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        compiled: Callable[..., Any] = njit(*loops, **options)  # Numba decorates loops of its own at first.
        return compiled

    monkeypatch.setattr(numba, "njit", no_locator)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(jit, "_warned", False)
    with pytest.warns(SufficeWarning, match="NUMBA_CACHE_DIR"):
        assert jit.kernel(plus_one)(2) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit.kernel(plus_one)(3) == 4


def test_where_nothing_else_can_be_written_a_private_folder_serves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    njit = numba.njit

    def no_locator(*loops: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        if options.get("cache") and not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function: no locator available")
        compiled: Callable[..., Any] = njit(*loops, **options)  # Numba decorates loops of its own at first.
        return compiled

    monkeypatch.setattr(numba, "njit", no_locator)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert jit.kernel(plus_one)(2) == 3
    (folder,) = tmp_path.iterdir()
    assert numba.config.CACHE_DIR == str(folder)
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_can_write_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = ahead.private_folder()
    assert folder is not None
    folder.chmod(0o777)
    assert ahead.private_folder() is None


def test_compiling_for_longer_than_a_second_is_said_once(fresh_python: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "ordinary.py").write_text(LOOP)
    code = f"""
import sys, time
sys.path.insert(0, {str(tmp_path)!r})
from suffice.kernels import ahead
ahead.SAY_AFTER = 0.0
ahead.say = lambda text: print(text)
from suffice.kernels import jit
from numba.core import event
class Slow(event.Listener):
    def on_start(self, event):
        time.sleep(0.2)
    def on_end(self, event):
        pass
event.register("numba:compile", Slow())
import ordinary
ordinary.plain(1)
print("now ours")
ordinary.loop.py_func.__module__ = "suffice.kernels.compiled.ordinary"
ordinary.loop(1)
ordinary.loop(1.0)
"""
    assert fresh_python(code).splitlines() == [
        "now ours",
        "compiling loops, once on this machine where they can be kept ...",
    ]


LOOP = """
import numba

@numba.njit
def plain(x):
    return x + 1

@numba.njit
def loop(x):
    return x + 2
"""
