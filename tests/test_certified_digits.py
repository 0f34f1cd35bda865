"""NIST's certified values, to the digits that their data allow."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from benchmarks.nist.data import ANOVAS, REGRESSIONS, SAMPLES, Anova, Regression, Sample
from benchmarks.nist.digits import (
    OURS,
    anova_digits,
    answer,
    digits,
    exactly,
    sample_digits,
    variances_by_network,
    variances_exactly,
)
from benchmarks.nist.digits import SAMPLE_PROGRAMS as SAMPLED

import suffice as sf
from test_benchmarks import run


def named(problem: Regression | Anova | Sample) -> str:
    return problem.name


def test_digits_are_log_relative_errors_of_the_worst_number() -> None:
    assert digits([1.0, 2.002], [1.0, 2.0]) == pytest.approx(3.0)
    assert digits(1e-9, 0.0) == pytest.approx(9.0)
    assert digits([3.0], [3.0]) == 15.0
    assert digits([np.nan, 1.0], [1.0, 1.0]) == 0.0


@pytest.mark.parametrize("program", OURS)
@pytest.mark.parametrize("problem", REGRESSIONS, ids=named)
def test_regressions(problem: Regression, program: str) -> None:
    """Nine digits of coefficients, their standard deviations and that of the residuals; seven of those of Filip.

    Powers rounded to float64 have no more than 7.6 digits of Filip's coefficients to give.
    """
    found = answer(OURS[program], problem)
    assert found is not None
    for figure in found.digits(problem):
        assert figure is not None
        assert figure >= (7.0 if problem.name == "Filip" else 9.0)


@pytest.mark.parametrize("problem", REGRESSIONS, ids=named)
def test_networks_have_all_the_digits_that_the_columns_have(problem: Regression) -> None:
    found = answer(OURS["BayesianNetwork"], problem)
    assert found is not None
    np.testing.assert_allclose(found.estimates, exactly(problem).estimates, rtol=1e-12)


@pytest.mark.parametrize("name", ["Wampler1", "Wampler2"])
def test_perfect_fits_are_fitted_and_say_that_there_is_no_maximum(name: str) -> None:
    problem = next(one for one in REGRESSIONS if one.name == name)
    net = sf.BayesianNetwork({"y": list(problem.columns)}).fit({**problem.columns, "y": problem.y})
    for report in (net.report_, sf.GLM().fit(problem.columns, problem.y).report_):
        assert (report.certificate.exists, report.certificate.value_gap) == (False, None)
        assert report.warnings


@pytest.mark.parametrize("problem", ANOVAS, ids=named)
def test_analyses_of_variance(problem: Anova) -> None:
    """All digits that the numbers have in float64: at a mean of 1e12 they have four or five."""
    if problem.name in ("SmLs03", "SmLs06", "SmLs09"):  # As SmLs02, 05 and 08, ten times as often.
        expected = {"SmLs03": (14.0, 14.0), "SmLs06": (10.1, 10.5), "SmLs09": (4.1, 4.5)}[problem.name]
    else:
        limit = anova_digits(variances_exactly, problem)
        assert limit[1] is not None
        expected = (limit[0] - 0.1, limit[1] - 0.1)
    f, residual = anova_digits(variances_by_network, problem)
    assert residual is not None
    assert f >= expected[0]
    assert residual >= expected[1]


@pytest.mark.parametrize("problem", SAMPLES, ids=named)
def test_samples(problem: Sample) -> None:
    limit = sample_digits(SAMPLED["exact"], problem)
    for program in ("Normal", "BayesianNetwork"):
        assert sample_digits(SAMPLED[program], problem) >= (limit[0] - 0.1, limit[1] - 0.1)
    assert limit[1] > 8


def test_the_data_are_those_of_scipy() -> None:
    folder = Path(inspect.getfile(scipy.stats)).parent / "tests" / "data" / "nist_anova"
    if not folder.exists():
        pytest.skip("This SciPy has no files of NIST.")
    for problem in ANOVAS:
        lines = (folder / f"{problem.name}.dat").read_text().splitlines()
        first = max(at for at, line in enumerate(lines) if line.startswith("Data:"))
        rows = [line.split() for line in lines[first + 1 :] if line.strip()]
        assert [word for group in problem.values for word in group] == [value for _, value in rows]
        assert problem.labels == [int(group) for group, _ in rows]
        between, within = (next(line.split() for line in lines if line.startswith(word)) for word in ("Betw", "With"))
        deviation = next(line.split()[-1] for line in lines if "Standard Deviation" in line)
        assert (problem.f, problem.within, problem.residual) == (between[5], within[3], deviation)


def test_the_command_prints_the_tables() -> None:
    printed = run("-m", "benchmarks.nist")
    names = [*map(named, REGRESSIONS), *map(named, ANOVAS), *map(named, SAMPLES)]
    assert all(f"| {name} |" in printed for name in names)
