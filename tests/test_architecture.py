"""The house rules, read from the source by `ast`: who may import whom, what is exported, how long things are."""

import ast
import gc
import importlib
import inspect
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "suffice"

# From the ground up. A module may import its own layer and any rung below; layers on one rung do not know each other.
# Families and models inherit `fit` from `fitting`, which sees both through protocols only; its report and its control
# stand lower, because engines and solvers know them.
LADDER = (
    {"array_types", "attributes", "choices", "errors"},
    {"records", "calls", "spelled_states"},
    {"options", "double_double", "registry"},
    {"checks"},
    {"kernels", "storage"},
    {"domain"},
    {"answers"},
    {"grouped_answers"},
    {"statistics", "table"},
    {"fitting.report"},
    {"graphs", "fitting.control"},
    {"engines", "solvers", "sources"},
    {"fitting"},
    {"families"},
    {"models"},
    {"formats"},
    {"extend"},
    {"views"},
    {"demo", "warmup"},
    {"cli"},
    {"__main__"},
)
# What a fit says about itself, what there is to see of a model, and where both are shown stand together.
SAME_LAYER = dict.fromkeys(("fitting.outlets", "fitting.portrait", "fitting.inference"), "fitting.report")
RUNG = {layer: rung for rung, layers in enumerate(LADDER) for layer in layers}


def layer_of(name: str) -> str:
    """The layer of a module: its folder, or the module itself where it has a rung of its own."""
    module = ".".join(name.split(".")[:2])
    module = SAME_LAYER.get(module, module)
    return module if module in RUNG else name.partition(".")[0]


# Compiled loops are for those who compute (adding two sparse answers is arithmetic on arrays); the rest asks them. The
# driver alone holds a fit to one path.
KERNEL_USERS = {"answers", "engines", "fitting", "grouped_answers", "kernels", "solvers", "sources", "warmup"}
# These use the library as its users do, through the public names.
ROOT_USERS = {"cli", "demo", "views", "warmup", "__main__"}

# Loaded on first use, inside a function, except where the module cannot be written without.
DELAYED = {
    *("dask", "distributed", "duckdb", "matplotlib", "narwhals", "networkx", "numba", "pandas"),
    *("polars", "pyarrow", "pyspark", "ray", "scipy", "sklearn", "tqdm", "typer"),
}
AT_MODULE_LEVEL = {"cli": {"typer"}, "kernels": {"numba"}}

NAMES_THAT_SAY_NOTHING = {"base_utils", "common", "core", "helper", "helpers", "misc", "util", "utils"}
LONGEST_FILE = 500
LONGEST_FUNCTION = 80


@dataclass(frozen=True)
class Import:
    """One import: `target` is a dotted name, `names` what is taken from it; `moment` is when it runs."""

    target: str
    names: tuple[str, ...]
    line: int
    moment: str  # "load", "call" or "typing"

    def own_modules(self, modules: set[str]) -> set[str]:
        """The modules of this package that the statement reaches, as dotted names without the package's own."""
        if self.target.partition(".")[0] != "suffice":
            return set()
        inner = self.target.removeprefix("suffice").lstrip(".")
        if not self.names:
            return {inner}
        below = {f"{inner}.{name}".lstrip(".") for name in self.names}
        found = below & (modules | set(RUNG))
        return found | ({inner} if len(found) < len(below) else set())


def is_for_typing(node: ast.AST) -> bool:
    """Whether the node is an `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def string_import(node: ast.AST) -> str | None:
    """The module that ``import_module("suffice.x")`` names; of a name put together, the part that is written out."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    if ast.unparse(node.func) not in {"importlib.import_module", "import_module", "__import__"}:
        return None
    name = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
    return name.value.rstrip(".") if isinstance(name, ast.Constant) and isinstance(name.value, str) else None


def imports_of(tree: ast.AST, package: str, moment: str = "load") -> Iterator[Import]:
    """Every import below a node, with the moment it runs; relative ones are resolved against `package`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno, moment)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            start = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            target = ".".join(filter(None, (start, node.module)))
            yield Import(target, tuple(alias.name for alias in node.names), node.lineno, moment)
        elif (named := string_import(node)) is not None:
            yield Import(named, (), node.lineno, moment)  # type: ignore[attr-defined]
        elif is_for_typing(node):
            yield from imports_of(ast.Module(node.body, []), package, "typing")  # type: ignore[attr-defined]
            yield from imports_of(ast.Module(node.orelse, []), package, moment)  # type: ignore[attr-defined]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imports_of(node, package, "call" if moment == "load" else moment)
        else:
            yield from imports_of(node, package, moment)


N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True)
class Module:
    """One file: its dotted name without the package's own ("" is the package), its syntax tree and its imports."""

    name: str
    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def layer(self) -> str:
        """Its layer on the ladder."""
        return layer_of(self.name)

    @cached_property
    def _by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        kinds: dict[type[ast.AST], list[ast.AST]] = {}
        for node in ast.walk(self.tree):
            kinds.setdefault(type(node), []).append(node)
        return kinds

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions: their two kinds have no type in common but that of statements."""
        return [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]

    def nodes(self, *kinds: type[N]) -> list[N]:
        """All nodes of some kinds; the tree is walked once for all questions."""
        return [node for kind in kinds for node in self._by_kind.get(kind, [])]  # type: ignore[misc]


def read_modules(package: Path) -> dict[str, Module]:
    """All modules of a package by name."""
    modules = {}
    gc.disable()  # Trees are many small objects that stay: looking through them again and again finds nothing to free.
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        folder = parts[:-1]
        name = ".".join(folder if parts[-1] == "__init__" else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        modules[name] = Module(name, path, tree, tuple(imports_of(tree, ".".join(("suffice", *folder)))))
    gc.freeze()
    gc.enable()
    return modules


def upward_imports(modules: dict[str, Module]) -> list[str]:
    """Imports that do not go down the ladder."""
    wrong = []
    for module in modules.values():
        for entry in module.imports if module.name else ():
            for target in entry.own_modules(set(modules)):
                layer = layer_of(target)
                if layer == "":
                    allowed = module.layer in ROOT_USERS
                elif layer == "kernels":
                    allowed = module.layer in KERNEL_USERS
                else:
                    allowed = layer == module.layer or RUNG[layer] < RUNG[module.layer]
                if not allowed:
                    wrong.append(f"{module.name}, line {entry.line}: imports suffice.{target}".rstrip("."))
    return wrong


def import_cycle(modules: dict[str, Module]) -> list[str]:
    """One cycle of imports that run at load or call time, or an empty list; the package's own lazy root is no part."""
    graph = {
        name: {
            target
            for entry in module.imports
            if entry.moment != "typing"
            for target in entry.own_modules(set(modules))
            if target and target != name
        }
        for name, module in modules.items()
        if name
    }
    done: set[str] = set()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(graph.get(name, ())):
            if cycle := walk(target, [*path, name]):
                return cycle
        done.add(name)
        return []

    return next(filter(None, (walk(name, []) for name in sorted(graph))), [])


def hasty_imports(modules: dict[str, Module]) -> list[str]:
    """Slow or optional packages imported when a module loads, and Numba anywhere outside the kernels."""
    wrong = []
    for module in modules.values():
        for entry in module.imports:
            package = entry.target.partition(".")[0]
            hasty = entry.moment == "load" and package in DELAYED - AT_MODULE_LEVEL.get(module.layer, set())
            if hasty or (package == "numba" and module.layer != "kernels"):
                wrong.append(f"{module.name or '__init__'}, line {entry.line}: imports {entry.target}")
    return wrong


# They look at models from outside, through `portrait()` and what every model has, and never ask what a model is. What
# is left asks open files for their name, and errors of the parser of options for their text.
OUTSIDERS, FOREIGN = {"cli", "formats", "views"}, {"cli", "formats.streams"}


def sniffing(modules: dict[str, Module]) -> list[str]:
    """Calls of `hasattr` and `getattr` in modules that look at models from outside."""
    return [
        f"{module.name}, line {node.lineno}: {ast.unparse(node)}"
        for module in modules.values()
        if module.layer in OUTSIDERS and module.name not in FOREIGN
        for node in module.nodes(ast.Call)
        if ast.unparse(node.func) in {"hasattr", "getattr"}
    ]


MODULES = read_modules(PACKAGE)


def test_every_module_has_a_rung() -> None:
    assert {module.layer for module in MODULES.values()} - {""} <= set(RUNG)


def test_imports_only_go_down() -> None:
    wrong = upward_imports(MODULES)
    assert not wrong, "\n".join(wrong)


def test_there_is_no_import_cycle() -> None:
    cycle = import_cycle(MODULES)
    assert not cycle, " -> ".join(cycle)


def test_nobody_asks_a_model_what_it_is() -> None:
    wrong = sniffing(MODULES)
    assert not wrong, "\n".join(wrong)


def test_slow_packages_wait_for_their_first_use() -> None:
    wrong = hasty_imports(MODULES)
    assert not wrong, "\n".join(wrong)


def test_names_of_modules_say_what_they_hold() -> None:
    assert [name for name in MODULES if NAMES_THAT_SAY_NOTHING & set(name.replace("_", ".").split("."))] == []


def test_files_of_tests_have_names_of_their_own() -> None:
    """pytest imports them by name: of two with the same name, a run of all tests would refuse the second."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []


def test_files_are_short() -> None:
    lengths = {
        str(module.path.relative_to(PACKAGE)): len(module.path.read_text().splitlines()) for module in MODULES.values()
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_functions_are_short() -> None:
    lengths = {
        f"{name}.{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for name, module in MODULES.items()
        for node in module.functions()
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


def exported() -> list[str]:
    return list(importlib.import_module("suffice").__all__)


def test_exports_are_listed_once_and_in_order() -> None:
    names = exported()
    assert names == sorted(set(names))


def test_exports_are_what_type_checkers_see() -> None:
    typed = {name for entry in MODULES[""].imports if entry.moment == "typing" for name in entry.names}
    assert typed == {name for name in exported() if not name.startswith("__")}


def test_star_import_gives_the_exports() -> None:
    namespace: dict[str, object] = {}
    exec("from suffice import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(exported())


def test_listing_gives_the_exports() -> None:
    listed = {name for name in dir(importlib.import_module("suffice")) if not name.startswith("_")}
    assert listed == {name for name in exported() if not name.startswith("__")}


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        importlib.import_module("suffice").no_such_name  # noqa: B018


def own_docstring(value: object) -> str:
    """The docstring written for this very object: that of a parent class says nothing about the child."""
    document = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    return (document or "").strip()


def test_exports_resolve_and_are_documented() -> None:
    package = importlib.import_module("suffice")
    names = [name for name in exported() if not name.startswith("__")]
    assert [name for name in names if not own_docstring(getattr(package, name))] == []


SMALL_HOUSE = {
    "__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from suffice.models.net import Net",
    "errors.py": "",
    "domain.py": "import suffice.errors\nfrom suffice import errors",
    "kernels/__init__.py": "",
    "kernels/count.py": "import numba",
    "sources/files.py": "from suffice.kernels import count\ndef read():\n    import pyarrow.parquet",
    "fitting.py": "from suffice.sources.files import read",
    "models/net.py": "from ..fitting import fit\nfrom suffice.domain import Domain",
    "cli.py": "import typer\nimport suffice as sf",
}


def house(folder: Path, **changes: str) -> dict[str, Module]:
    """Write a small package that keeps every rule, with some files changed, and read it back."""
    for name, text in {
        **SMALL_HOUSE,
        **{key.replace("__", "/") + ".py": text for key, text in changes.items()},
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_modules(folder)


def test_a_clean_house_passes(tmp_path: Path) -> None:
    modules = house(tmp_path)
    assert (upward_imports(modules), import_cycle(modules), hasty_imports(modules)) == ([], [], [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("domain", "from suffice.models.net import Net"),
        ("domain", "def later():\n    from suffice import fitting"),
        ("domain", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from suffice.fitting import fit"),
        ("domain", "import suffice"),
        ("models__net", "from ..kernels.count import add"),
        ("sources__files", "from suffice.engines import chain"),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, name: str, text: str) -> None:
    found = upward_imports(house(tmp_path, **{name: text}))
    assert [line.partition(",")[0] for line in found] == [name.replace("__", ".")]


def test_a_cycle_is_found(tmp_path: Path) -> None:
    modules = house(tmp_path, models__net="def f():\n    from .chain import g", models__chain="from .net import f")
    assert import_cycle(modules) == ["models.chain", "models.net", "models.chain"]


def test_a_cycle_by_names_is_found(tmp_path: Path) -> None:
    hidden = "import importlib\ndef f():\n    importlib.import_module('suffice.models.chain').g()"
    modules = house(tmp_path, models__net=hidden, models__chain="from .net import f")
    assert import_cycle(modules) == ["models.chain", "models.net", "models.chain"]
    upward = "import importlib\ndef f(kind):\n    importlib.import_module(f'suffice.models.{kind}')"
    assert [line.partition(",")[0] for line in upward_imports(house(tmp_path, domain=upward))] == ["domain"]


def test_sniffing_is_found(tmp_path: Path) -> None:
    modules = house(tmp_path, cli__verbs="def f(model):\n    return hasattr(model, 'nodes')", cli="")
    assert sniffing(modules) == ["cli.verbs, line 2: hasattr(model, 'nodes')"]


@pytest.mark.parametrize(
    "text", ["import scipy.special", "def f():\n    from numba import njit", "if True:\n    import tqdm"]
)
def test_a_hasty_import_is_found(tmp_path: Path, text: str) -> None:
    assert [line.partition(",")[0] for line in hasty_imports(house(tmp_path, domain=text))] == ["domain"]


# -- public classes, as a reader meets them ----------------------------------------------------------------------------

LONGEST_CLASS, MOST_BASES, MOST_PRIVATE = 700, 2, 8
MOST_STUBS = 10


def public_classes() -> list[type]:
    """Models and distributions that the package exports."""
    from suffice.fitting.estimator import Estimator

    package = importlib.import_module("suffice")
    exported = [getattr(package, name) for name in package.__all__]
    return [value for value in exported if isinstance(value, type) and issubclass(value, Estimator)]


@cache
def lines_and_tree(cls: type) -> tuple[int, ast.Module]:
    """How many lines a class has, and its syntax tree."""
    lines = inspect.getsourcelines(cls)[0]
    return len(lines), ast.parse(textwrap.dedent("".join(lines)))


def private_attributes(tree: ast.AST) -> set[str]:
    """Names of private attributes that methods set on their instance."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and node.attr.startswith("_")
    }


@pytest.mark.parametrize("public", public_classes(), ids=lambda cls: cls.__name__)
def test_a_public_class_is_short_through_all_that_it_inherits(public: type) -> None:
    classes = [cls for cls in public.__mro__ if cls.__module__.startswith("suffice")]
    lines, sources = zip(*map(lines_and_tree, classes), strict=True)
    assert sum(lines) <= LONGEST_CLASS
    assert max(len(cls.__bases__) for cls in classes) <= MOST_BASES
    assert len(set().union(*map(private_attributes, sources))) <= MOST_PRIVATE


def calls(module: Module, name: str) -> int:
    """How often a module calls something of this name."""
    return sum(isinstance(node.func, ast.Name) and node.func.id == name for node in module.nodes(ast.Call))


def calls_of(name: str) -> dict[str, int]:
    """How often each module calls something of this name."""
    counts = {module.name: calls(module, name) for module in MODULES.values()}
    return {module: count for module, count in counts.items() if count}


def test_receipts_are_written_in_one_place() -> None:
    assert calls_of("Report") == {"fitting.driver": 1}
    assert set(calls_of("fingerprint")) == {"fitting.driver"}


def test_classes_that_look_concrete_have_no_stubs() -> None:
    raised = [
        module.name
        for module in MODULES.values()
        for node in module.nodes(ast.Raise)
        if node.exc is not None and "NotImplementedError" in ast.unparse(node.exc)
    ]
    assert len(raised) <= MOST_STUBS


# -- measures of the whole package ------------------------------------------------------------------------------------

FILES = {str(module.path.relative_to(PACKAGE)): module for module in MODULES.values()}
Function = ast.FunctionDef | ast.AsyncFunctionDef

#: The one module that sets and reads the fields of an instance past its methods.
FIELDS = "records.py"
MOST_ANY = 0.08
#: They name that something was found, or where, not what it is.
SAY_NOTHING = {"found", "at", "place", "said", "told"}
#: Options that have these names wherever people know them.
KNOWN_OPTIONS = {("models/glm/effects.py", "at")}


def parameters() -> Iterator[tuple[str, str, ast.arg]]:
    """Module, function and parameter of all that takes one."""
    for name, module in FILES.items():
        for node in module.functions():
            given = node.args
            for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                if one is not None and one.arg not in ("self", "cls"):
                    yield name, node.name, one


def test_fields_are_touched_past_methods_in_one_module() -> None:
    touched = {
        name
        for name, module in FILES.items()
        for node in module.nodes(ast.Attribute)
        if node.attr == "__dict__" and ast.unparse(node.value) != "cls"
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
    for name, module in FILES.items():
        for node in module.nodes(ast.ClassDef):
            modules.setdefault(node.name, []).append(name)
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


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
        f"{name}: {' > '.join(path)}"
        for name, module in FILES.items()
        if Path(name).name != "certificate.py" and name != "fitting/report.py" and calls(module, "Certificate")
        for path in enclosing(module.tree, "Certificate")
        if not any(function in ("judge", "_judge") for function in path)
    ]
    assert not wrong, "\n".join(wrong)


def stored(module: Module) -> Iterator[tuple[str, int]]:
    """Names of values, with their lines: assigned, looped over, taken as parameters, set as attributes."""
    yield from ((node.id, node.lineno) for node in module.nodes(ast.Name) if isinstance(node.ctx, ast.Store))
    yield from ((node.attr, node.lineno) for node in module.nodes(ast.Attribute) if isinstance(node.ctx, ast.Store))
    yield from ((node.arg, node.lineno) for node in module.nodes(ast.arg))


def test_names_of_values_say_what_they_are() -> None:
    wrong = [
        f"{file}, line {line}: {name}"
        for file, module in FILES.items()
        for name, line in stored(module)
        if name in SAY_NOTHING and (file, name) not in KNOWN_OPTIONS
    ]
    assert not wrong, f"{len(wrong)} names:\n" + "\n".join(wrong[:40])
