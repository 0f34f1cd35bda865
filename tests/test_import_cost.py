"""`import suffice` loads NumPy and nothing that is slow: those packages wait for their first use."""

from collections.abc import Callable
from pathlib import Path

HEAVY = ("scipy", "numba", "llvmlite", "pyarrow", "narwhals", "pandas", "polars", "typer", "rich", "tqdm", "matplotlib")


def test_import_loads_no_heavy_package(fresh_python: Callable[[str], str]) -> None:
    code = f"import suffice, sys; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert fresh_python(code).split() == []


def test_import_runs_no_part_of_the_package_that_compiles(fresh_python: Callable[[str], str]) -> None:
    code = "import suffice, sys; print(*[name for name in sys.modules if name.startswith('suffice.kernels')])"
    assert fresh_python(code).split() == []


def test_import_prints_nothing(fresh_python: Callable[[str], str]) -> None:
    assert fresh_python("import suffice") == ""


def test_listing_the_public_names_loads_no_heavy_package(fresh_python: Callable[[str], str]) -> None:
    code = f"import suffice, sys; dir(suffice); print(*[name for name in {HEAVY!r} if name in sys.modules])"
    assert fresh_python(code).split() == []


def test_a_network_loads_neither_em_nor_engines_before_they_are_needed(fresh_python: Callable[[str], str]) -> None:
    code = (
        "import suffice as sf, sys; sf.BayesianNetwork([('a', 'b')]);"
        "parts = ('suffice.models.bayesian.em', 'suffice.models.bayesian.queries.mixed',"
        "'suffice.models.bayesian.queries.sampled',"
        "'suffice.models.bayesian.size_report',"
        "'suffice.engines.junction_tree', 'suffice.engines.gaussian', 'suffice.sources', 'suffice.kernels',"
        "'suffice.formats', 'scipy', 'numba');"
        "print(*[name for name in sys.modules if name.startswith(parts)])"
    )
    assert fresh_python(code).split() == []


def test_a_closed_form_fit_loads_no_em(fresh_python: Callable[[str], str]) -> None:
    code = (
        "import suffice as sf, sys; sf.BayesianNetwork([('a', 'b')]).fit({'a': [0, 1, 1], 'b': [1, 0, 1]});"
        "parts = ('suffice.models.bayesian.em', 'suffice.engines.junction');"
        "print(*[name for name in sys.modules if name.startswith(parts)])"
    )
    assert fresh_python(code).split() == []


def test_reading_a_network_and_asking_it_loads_nothing_that_learns(
    fresh_python: Callable[[str], str], tmp_path: Path
) -> None:
    path = tmp_path / "rain.bif"
    path.write_text(
        "network rain { } variable rain { type discrete [ 2 ] { yes, no }; } variable wet { type discrete [ 2 ] { yes,"
        " no }; } probability ( rain ) { table 0.2, 0.8; } probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.1, 0.9;"
        " }"
    )
    parts = (
        *(
            "suffice.answers",
            "suffice.statistics",
            "suffice.fitting.report",
            "suffice.fitting.control",
            "suffice.storage",
        ),
        *("suffice.families", "suffice.solvers", "suffice.sources", "suffice.kernels.compiled"),
        *("suffice.models.bayesian.em", "suffice.models.bayesian.priors", "suffice.models.bayesian.node_scores"),
        *("suffice.models.bayesian.nodes.kinds", "suffice.models.bayesian.nodes.linear_gaussian"),
        *("suffice.models.bayesian.nodes.table_learner", "suffice.engines.rows", "suffice.kernels.junction_tree_cases"),
        *("suffice.models.em", "suffice.models.bayesian.nodes.lookup", "suffice.kernels.junction_tree_program"),
        *("scipy", "numba", "pathlib", "gzip", "html", "dataclasses", "importlib.util", "numpy.random"),
    )
    code = (
        f"import suffice as sf, sys; net = sf.read({str(path)!r});"
        "assert abs(net.marginals()['wet'].at(wet='yes') - 0.26) < 1e-12; net.query('rain', given={'wet': 'yes'});"
        f"print(*[name for name in sys.modules if name.startswith({parts!r})])"
    )
    assert fresh_python(code).split() == []
