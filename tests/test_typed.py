"""What checkers know of the library: the scripts of `typed/` are its documented attributes, each with its type."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import suffice as sf
from fuzz.zoo import ZOO
from suffice import choices
from suffice.models.conditional_field.learning import STOCHASTIC
from suffice.models.gaussian_graph.learning import OWN_SOLVERS as GAUSSIAN
from suffice.models.glm.links import LINKS
from suffice.models.glm.registry import FAMILIES
from suffice.models.glm.solve import SOLVERS
from suffice.models.markov.approximate.options import APPROXIMATE
from suffice.models.markov.builders import CODINGS
from suffice.models.markov.learning import OWN_SOLVERS as MARKOV
from suffice.models.markov_chain.task import _BY_NAME
from suffice.solvers.registry import _solvers

TYPED = Path(__file__).parent / "typed"
SCRIPTS = sorted(TYPED.glob("uses_*.py"))
MISTAKES = TYPED / "misspelt.py"


def loaded(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_what_checkers_accept_runs(script: Path) -> None:
    loaded(script).main()


def test_the_package_says_that_it_is_typed() -> None:
    assert sf.__file__ is not None
    assert (Path(sf.__file__).parent / "py.typed").exists()


def test_every_mistake_is_an_error_of_the_type_checker(tmp_path: Path) -> None:
    """mypy, which is always there where the package is developed; `.ci/run` asks pyright as well."""
    pytest.importorskip("mypy")
    text = MISTAKES.read_text(encoding="utf-8")
    bare = re.sub(r"  # type: ignore\[.*", "", text)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "# type: ignore" in line]
    script = tmp_path / "mistakes.py"
    script.write_text(bare, encoding="utf-8")
    root = TYPED.parent.parent
    command = [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), str(script)]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout
    found = {int(number) for number in re.findall(r"mistakes\.py:(\d+): error", said)}
    assert found == set(lines), said


def test_pyright_takes_the_scripts_and_finds_every_mistake() -> None:
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if pyright is None:
        pytest.skip("pyright is not installed; mypy checks the same scripts")
    # The packages of this environment, whether it is activated or not.
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "-p", str(TYPED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {done.stderr.strip()[-200:]}")
    assert json.loads(done.stdout)["generalDiagnostics"] == []


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        (choices.MarkovSolver, ("auto", *MARKOV, *APPROXIMATE)),
        (choices.GaussianSolver, ("auto", *GAUSSIAN)),
        (choices.RegressionSolverName, ("auto", *SOLVERS)),
        (choices.FieldSolver, ("auto", *STOCHASTIC)),
    ],
)
def test_the_types_of_solvers_name_those_that_are_there(kind: object, known: tuple[str, ...]) -> None:
    assert set(get_args(kind)) == {*known, *get_args(choices.ObjectiveSolver)}


def test_the_types_of_other_names_do_too() -> None:
    assert set(get_args(choices.ObjectiveSolver)) <= set(_solvers.own())
    assert get_args(choices.LinkName) == tuple(LINKS)
    assert set(get_args(choices.FamilyName)) <= set(FAMILIES.own())
    assert get_args(choices.Coding) == tuple(CODINGS)
    assert get_args(choices.SmoothingName) == tuple(_BY_NAME)


# -- all that is documented ------------------------------------------------------------------------------------------

USED = set(re.findall(r"\.(\w+)", "\n".join(script.read_text(encoding="utf-8") for script in SCRIPTS)))
PAGES = [Path(__file__).parent.parent / "README.md", *(Path(__file__).parent.parent / "docs").glob("*.md")]
#: What is written in pages of several sites and files, and methods of Python's own classes: no results of a fit.
OF_OTHERS = {"answer", "ask", "discrete", "get", "index", "keys", "lengths", "of", "parameters", "shape", "uniform"}
OF_OTHERS |= {"evaluate", "n_params", "path", "sum", "weight", "write"}


#: Results that a model has or has not by what it was learned from; the error says why.
OF_SOME = {"standard_errors_", "weight_covariance_"}


def public_members() -> set[str]:
    classes = [member for name in sf.__all__ if isinstance(member := getattr(sf, name), type)]
    return {name for kind in classes for name in dir(kind) if not name.startswith("_")}


def test_the_scripts_use_all_that_the_pages_use() -> None:
    blocks = re.findall(
        r"```python\n(.*?)```", "\n".join(page.read_text(encoding="utf-8") for page in PAGES), re.DOTALL
    )
    written = set(re.findall(r"\.([A-Za-z]\w*)", "\n".join(blocks)))
    assert sorted((written & public_members()) - USED - OF_OTHERS) == []


@pytest.mark.parametrize("name", ZOO)
def test_the_scripts_use_every_fitted_attribute(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ZOO[name].make()
    found = {attribute for attribute in dir(fitted) if attribute.endswith("_") and not attribute.startswith("_")}
    assert sorted(found - USED) == []


def readable(model: object, name: str) -> bool:
    try:
        getattr(model, name)
    except sf.SufficeError:
        return False
    return True


@pytest.mark.parametrize("name", ZOO)
def test_what_is_listed_of_a_fit_is_there(name: str) -> None:
    """`dir` lists no result that the model then refuses, and nothing that ends in ``_`` before a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = ZOO[name].make()
        # Errors of estimates are worked out when they are read.
        assert [each for each in dir(fitted) if each not in OF_SOME and not readable(fitted, each)] == []
        if hasattr(fitted, "fit"):
            listed = dir(fitted.clone())
            given = fitted.clone()._fit is not None
            assert given or [each for each in listed if each.endswith("_") and not each.startswith("_")] == []


# -- completion at a prompt ------------------------------------------------------------------------------------------


def completions(text: str, **names: object) -> set[str]:
    import rlcompleter

    completer = rlcompleter.Completer(names)
    found = [completer.complete(text, number) for number in range(500)]
    return {name.rstrip("()") for name in found if name is not None}


def test_completion_knows_what_was_learned() -> None:
    unfitted, fitted = sf.Normal(), sf.Normal().fit([1.0, 2.0, 4.0])
    assert {"law.mean_", "law.variance_", "law.report_", "law.aic_"} <= completions("law.", law=fitted)
    assert not {"mean_", "report_"} & set(dir(unfitted))
    assert {"law.fit", "law.prior", "law.estimate"} <= completions("law.", law=unfitted)
    assert completions("law.mea", law=fitted) == {"law.mean", "law.mean_", "law.mean_parameters_"}


def test_what_is_listed_can_be_read() -> None:
    law = sf.Normal(prior=sf.NormalInverseGamma(2, 1, 1, 0)).fit([1.0, 2.0, 4.0])
    for name in dir(law):
        assert hasattr(law, name), name
    given = sf.Normal(0.0, 1.0)
    assert "mean_" in dir(given)
    net = sf.BayesianNetwork([("a", "b")])
    assert {"nodes", "edges", "max_iter"} <= set(dir(net))
    assert not [name for name in dir(net) if name.endswith("_") and not name.startswith("_")]
