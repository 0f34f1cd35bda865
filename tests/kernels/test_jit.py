"""The decorator of compiled loops, and what keeps its cache honest."""

import ast
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

import suffice
from suffice.errors import SufficeWarning
from suffice.kernels import compiled, jit

MODULES = sorted(path for path in Path(compiled.__path__[0]).glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_each_file_of_loops_carries_the_version(path: Path) -> None:
    constants = {
        target.id: node.value.value
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert constants.get("BUILT_FOR") == suffice.__version__


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_loops_call_only_loops_of_their_own_file(path: Path) -> None:
    imported = [node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert not [name for name in imported if name.startswith("suffice.kernels.compiled")]


def plus_one(x: int) -> int:
    return x + 1


def test_a_loop_compiles_and_runs() -> None:
    loop = jit.kernel(plus_one)
    assert loop(2) == 3
    assert loop.targetoptions["nogil"]  # type: ignore[attr-defined]


def test_without_a_place_for_the_cache_it_warns_once_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = numba.njit

    def no_locator(**options: Any) -> Callable[..., Any]:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

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

    def no_locator(**options: Any) -> Callable[..., Any]:
        if options.get("cache") and not numba.config.CACHE_DIR:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(numba, "njit", no_locator)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert jit.kernel(plus_one)(2) == 3
    (folder,) = tmp_path.iterdir()
    assert numba.config.CACHE_DIR == str(folder)
    assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_others_can_write_is_not_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    folder = jit._private_folder()
    assert folder is not None
    folder.chmod(0o777)
    assert jit._private_folder() is None
