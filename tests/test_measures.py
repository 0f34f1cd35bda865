"""What the limits of files and functions let slip: measures of the whole package, read from its source."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "suffice"
MODULES = sorted(PACKAGE.rglob("*.py"))
TREES = {str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
Function = ast.FunctionDef | ast.AsyncFunctionDef

#: The one module that sets and reads the fields of an instance past its methods.
FIELDS = "records.py"
MOST_ANY = 0.08
LONGEST_CLASS, MOST_BASES = 700, 2
#: They name that something was found, or where, not what it is.
SAY_NOTHING = {"found", "at", "place", "said", "told"}


def parameters() -> Iterator[tuple[str, str, ast.arg]]:
    """Module, function and parameter of all that takes one."""
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                given = node.args
                for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                    if one is not None and one.arg not in ("self", "cls"):
                        yield module, node.name, one


def test_fields_are_touched_past_methods_in_one_module() -> None:
    touched = {
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "__dict__" and ast.unparse(node.value) != "cls"
    }
    assert touched == {FIELDS}


def test_parameters_say_their_types() -> None:
    folders: dict[str, list[bool]] = {}
    for module, _, one in parameters():
        anything = one.annotation is not None and ast.unparse(one.annotation) == "Any"
        folders.setdefault(module.rpartition("/")[0], []).append(anything)
    every = [anything for some in folders.values() for anything in some]
    shares = {folder: round(sum(some) / len(some), 3) for folder, some in folders.items()}
    assert sum(every) / len(every) < MOST_ANY, shares


def test_names_of_classes_are_unique() -> None:
    modules: dict[str, list[str]] = {}
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(module)
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def public_classes() -> list[type]:
    """Estimators and distributions that the package exports."""
    from suffice.fitting.estimator import Estimator

    package = importlib.import_module("suffice")
    exported = [getattr(package, name) for name in package.__all__]
    return [value for value in exported if isinstance(value, type) and issubclass(value, Estimator)]


@pytest.mark.parametrize("public", public_classes(), ids=lambda cls: cls.__name__)
def test_a_public_class_is_short_through_all_that_it_inherits(public: type) -> None:
    own = [cls for cls in public.__mro__ if cls.__module__.startswith("suffice")]
    assert sum(len(inspect.getsourcelines(cls)[0]) for cls in own) <= LONGEST_CLASS
    assert max(len(cls.__bases__) for cls in own) <= MOST_BASES


def enclosing(tree: ast.AST, name: str) -> Iterator[list[str]]:
    """Names of the functions around each call of something of this name."""

    def walk(node: ast.AST, path: list[str]) -> Iterator[list[str]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == name:
                yield path
            yield from walk(child, [*path, child.name] if isinstance(child, Function) else path)

    yield from walk(tree, [])


def test_certificates_are_written_by_judges() -> None:
    """In `judge` methods, in modules of certificates, which judges alone call, and out of files."""
    wrong = [
        f"{module}: {' > '.join(path)}"
        for module, tree in TREES.items()
        if Path(module).name != "certificate.py" and module != "fitting/report.py"
        for path in enclosing(tree, "Certificate")
        if not any(name in ("judge", "_judge") for name in path)
    ]
    assert not wrong, "\n".join(wrong)


def stored(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names of values, with their lines: assigned, looped over, taken as parameters, set as attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def test_names_of_values_say_what_they_are() -> None:
    wrong = [
        f"{module}, line {line}: {name}"
        for module, tree in TREES.items()
        for name, line in stored(tree)
        if name in SAY_NOTHING
    ]
    assert not wrong, f"{len(wrong)} names:\n" + "\n".join(wrong[:40])
