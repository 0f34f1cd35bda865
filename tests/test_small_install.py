"""Without pyarrow and without Numba: every model is fitted and asked; files and Arrow tables name the extra."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent

#: What Python runs first in an environment that lacks these packages.
LACKING = 'import sys\nsys.modules.update(dict.fromkeys(("pyarrow", "numba", "llvmlite")))\n'


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of an environment in which the packages cannot be imported, by what a process starts too."""
    folder = tmp_path_factory.mktemp("lacking")
    (folder / "sitecustomize.py").write_text(LACKING)
    paths = os.pathsep.join([str(folder), str(ROOT / "src"), str(ROOT / "tests" / "fuzz")])
    return {**os.environ, "PYTHONPATH": paths}


def printed(code: str, environment: dict[str, str], folder: Path) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_every_model_is_fitted_and_asked(bare: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import importlib.util, warnings; warnings.simplefilter('ignore')\n"
        "from zoo import ZOO\n"
        "for animal in ZOO.values():\n"
        "    model = animal.make()\n"
        "    for ask in animal.asks: ask(model)\n"
        "print(len(ZOO), importlib.util.find_spec('pyarrow'), importlib.util.find_spec('numba'))"
    )
    count, *found = printed(code, bare, tmp_path).split()
    assert int(count) >= 57
    assert found == ["None", "None"]


TABLES = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, pandas as pd, polars as pl
import suffice as sf
rng = np.random.default_rng(20)
n = 240
columns = {
    "person": np.repeat(np.arange(24), 10), "t": np.tile(np.arange(10), 24), "x": rng.normal(size=n),
    "w": rng.choice(["a", "b", "c"], n), "tag": rng.choice(["N", "V"], n), "k": rng.integers(0, 3, n),
}
given = {"dict": columns, "pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns)}
for rows in given.values():
    chain = dict(group="person", order="t")
    print("network", sf.BayesianNetwork([("w", "tag")]).fit(rows).report_.log_likelihood)
    hidden = sf.BayesianNetwork([("h", "w"), ("h", "tag")], hidden={"h": 2}).fit(rows)
    print("hidden", round(hidden.report_.log_likelihood, 6))
    print("markov", sf.MarkovNetwork([("w", "tag"), ("tag", "k"), ("w", "k")]).fit(rows).report_.log_likelihood)
    print("graph", sf.GaussianGraph([("x", "t")]).fit(rows).report_.log_likelihood)
    print("glm", sf.GLM("poisson").fit(rows, y="k", columns=["x", "w"]).report_.log_likelihood)
    print("chain", sf.MarkovChain().fit(rows, columns="w", **chain).report_.log_likelihood)
    model = sf.HiddenMarkovModel(2, emission=sf.Normal(), max_iter=20, tolerance=1e-3).fit(rows, columns="x", **chain)
    print("hmm", round(model.report_.log_likelihood, 6))
    model = sf.HiddenMarkovModel(2, emission=sf.Categorical(), max_iter=20, tolerance=1e-3)
    print("symbols", round(model.fit(rows, columns="w", **chain).report_.log_likelihood, 6))
    print("crf", sf.ChainCRF(prior=sf.Normal(variance=1.0)).fit(rows, y="tag", columns=["w"], **chain).score(
        rows, y="tag", columns=["w"], **chain))
"""


def test_tables_in_memory_give_the_same_figures(bare: dict[str, str], tmp_path: Path) -> None:
    whole = {**os.environ, "PYTHONPATH": str(ROOT / "src")}

    def figures(environment: dict[str, str]) -> tuple[list[str], list[float]]:
        pairs = [line.split() for line in printed(TABLES, environment, tmp_path).splitlines()]
        return [name for name, _ in pairs], [float(value) for _, value in pairs]

    names, values = figures(bare)
    assert len(names) == 27
    expected_names, expected = figures(whole)
    assert names == expected_names
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_long_columns_are_told_apart_without_a_hash_table_of_arrow(bare: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import numpy as np, suffice as sf\n"
        "rng = np.random.default_rng(3); n = 120_000\n"
        "rows = {'a': rng.choice(['x', 'y', 'z'], n), 'b': rng.integers(0, 40, n) * 10**9,\n"
        "        'c': rng.choice(np.array(['p', 'q', None], dtype=object), n)}\n"
        "print(*(sf.Categorical().fit({name: rows[name]}).report_.log_likelihood for name in ('a', 'b')))\n"
        "print(sf.summarize(sf.Categorical(), {'a': rows['a']}).rows)"
    )
    whole = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    assert printed(code, bare, tmp_path) == printed(code, whole, tmp_path)


@pytest.mark.parametrize(
    "call",
    [
        "sf.BayesianNetwork([('a', 'b')]).fit('rows.csv')",
        "sf.BayesianNetwork([('a', 'b')]).fit('rows.parquet')",
        "sf.MarkovChain().fit('rows.csv', columns='a', group='b')",
        "sf.GLM('poisson').fit('rows.csv', y='a')",
        "sf.Normal().fit(iter([{'x': [1.0, 2.0]}]))",
        "import polars as pl; sf.GLM('gaussian', formula='x ~ w').fit(pl.DataFrame({'x': [1.0], 'w': ['a']}))",
    ],
)
def test_files_name_the_extra(call: str, bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n2,1\n")
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    code = f"import suffice as sf\ntry: {call}\nexcept sf.MissingExtraError as error: print(error)"
    said = printed(code, bare, tmp_path)
    assert "'pyarrow', which is not installed" in said
    assert 'pip install "suffice[files]"' in said


def test_the_core_asks_for_no_pyarrow_and_numba_where_it_runs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [need for need in project["dependencies"] if need.startswith("pyarrow")]
    (numba,) = [need for need in project["dependencies"] if need.startswith("numba")]
    assert "sys_platform != 'emscripten'" in numba
    assert [need for need in project["optional-dependencies"]["files"] if need.startswith("pyarrow")]
