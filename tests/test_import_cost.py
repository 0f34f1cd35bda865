"""`import suffice` loads NumPy and nothing that is slow: those packages wait for their first use."""

from collections.abc import Callable

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
