"""Published deviances and degrees of freedom of log-linear models, for every method.

Small tables are typed in with their source; larger ones are read in place, and skipped by name where the data folder is
absent.
"""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from joint_tables import margin
from suffice.solvers.faces import smallest_face
from suffice.solvers.rank import dimensions, table_rank

pandas = pytest.importorskip("pandas")

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the folder shared/data is not there")
SOLVERS = ("auto", "ipf", "lbfgs", "newton")

# R's datasets package: hair, eye and sex of 592 students of statistics (Snee 1974), hair fastest.
HAIR_EYE_SEX = {
    "Hair": ["Black", "Brown", "Red", "Blond"],
    "Eye": ["Brown", "Blue", "Hazel", "Green"],
    "Sex": ["Male", "Female"],
}
HAIR_EYE_SEX_COUNTS = [
    *(32, 53, 10, 3, 11, 50, 10, 30, 10, 25, 7, 5, 3, 15, 7, 8),
    *(36, 66, 16, 4, 9, 34, 7, 64, 5, 29, 7, 5, 2, 14, 7, 8),
]
# R's datasets package: admissions at Berkeley in 1973 (Bickel, Hammel and O'Connell 1975), admission fastest.
ADMISSIONS = {"Admit": ["Admitted", "Rejected"], "Gender": ["Male", "Female"], "Dept": list("ABCDEF")}
ADMISSIONS_COUNTS = [
    *(512, 313, 89, 19, 353, 207, 17, 8, 120, 205, 202, 391),
    *(138, 279, 131, 244, 53, 138, 94, 299, 22, 351, 24, 317),
]
# Perches of 409 lizards (Schoener 1968, after Bishop, Fienberg and Holland 1975), diameter fastest.
LIZARDS = {"diam": ["<=4", ">4"], "height": [">4.75", "<=4.75"], "species": ["anoli", "dist"]}
LIZARD_COUNTS = [32, 11, 86, 35, 61, 41, 73, 70]
# Alcohol, cigarettes and marijuana of 2276 students in Dayton, Ohio (Agresti 2002, table 8.3), marijuana fastest.
DRUGS = {"M": ["yes", "no"], "C": ["yes", "no"], "A": ["yes", "no"]}
DRUG_COUNTS = [911, 538, 44, 456, 3, 43, 2, 279]


def typed(states: dict[str, list[str]], counts: list[int]) -> Any:
    """A series of counts, the first variable fastest."""
    index = pandas.MultiIndex.from_product(list(states.values())[::-1], names=list(states)[::-1])
    return pandas.Series(counts, index=index, dtype=float)


def collapsed(table: Any, variables: list[str]) -> Any:
    """The margin of a series of counts."""
    return table.groupby(level=variables).sum()


def stored(name: str) -> Any:
    frame = pandas.read_csv(DATA / "tables" / name, dtype={"Freq": float})
    return frame.set_index([column for column in frame.columns if column != "Freq"])["Freq"]


def figures(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / "tables" / "expected.json").read_text())["loglinear"][name]
    return found


def generators(text: str) -> list[tuple[str, ...]]:
    """Read ``[A B][C]`` or ``AB,C``."""
    if "[" in text:
        return [tuple(part.split()) for part in text.strip("[]").split("][")]
    return [tuple(part) for part in text.split(",")]


def fitted(table: Any, cliques: Any, solver: str = "auto") -> Any:
    return sf.MarkovNetwork(cliques, solver=solver, tolerance=1e-10).fit(table)  # type: ignore[arg-type]


def check(model: Any, expected: dict[str, Any], rel: float = 1e-8) -> None:
    """G^2, X^2 and degrees of freedom of a refit at full precision, and the log-likelihood."""
    assert model.df_ == expected["df"]
    assert model.deviance_ == pytest.approx(expected["lrt"], rel=rel, abs=1e-8)
    if expected.get("pearson") is not None:
        assert model.chi2_ == pytest.approx(expected["pearson"], rel=max(rel, 1e-7))
    if "minus2logL_multinomial" in expected:
        assert -2 * model.report_.log_likelihood == pytest.approx(expected["minus2logL_multinomial"], rel=1e-11)


def printed(value: float, figure: str) -> bool:
    """Whether a number is printed as this figure."""
    return f"{value:.{len(figure.partition('.')[2])}f}" == figure


HAIR = [
    # vcdExtra, vignette on log-linear models: G^2, X^2, degrees of freedom.
    ("[Hair][Eye][Sex]", "166.3001", "164.9247", 24),
    ("[Hair Sex][Eye Sex]", "156.6779", "147.944", 18),
    ("[Hair Eye][Sex]", "19.85656", "19.56712", 15),
    # R's example of loglin prints 6.761258 and 6.868292 from a loose fit; these are the converged figures.
    ("[Hair Eye][Hair Sex][Eye Sex]", "6.76125042", "6.86902724", 9),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("model", "deviance", "pearson", "df"), HAIR)
def test_hair_and_eyes(model: str, deviance: str, pearson: str, df: int, solver: str) -> None:
    net = fitted(typed(HAIR_EYE_SEX, HAIR_EYE_SEX_COUNTS), generators(model), solver)
    assert net.df_ == df
    assert printed(net.deviance_, deviance)
    assert printed(net.chi2_, pearson)
    assert net.report_.certificate.exists is True


DRUG_MODELS = [
    # Agresti (2002), goodness of fit of log-linear models for alcohol, cigarettes and marijuana.
    ("A,C,M", "1286.0", "1411.4", 4),
    ("A,CM", "534.2", "505.6", 3),
    ("C,AM", "939.6", "824.2", 3),
    ("M,AC", "843.8", "704.9", 3),
    ("AC,AM", "497.4", "443.8", 2),
    ("AC,CM", "92.0", "80.8", 2),
    ("AM,CM", "187.8", "177.6", 2),
    ("AC,AM,CM", "0.4", "0.4", 1),
    ("ACM", "0.0", "0.0", 0),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("model", "deviance", "pearson", "df"), DRUG_MODELS)
def test_alcohol_cigarettes_and_marijuana(model: str, deviance: str, pearson: str, df: int, solver: str) -> None:
    net = fitted(typed(DRUGS, DRUG_COUNTS), generators(model), solver)
    assert net.df_ == df
    assert printed(net.deviance_, deviance)
    assert printed(net.chi2_, pearson)


@pytest.mark.parametrize("solver", SOLVERS)
def test_expected_counts_without_the_interaction_of_three(solver: str) -> None:
    """Agresti (2002), fitted values of (AC, AM, CM): 910.4, 538.6, 44.6, 455.4, 3.6, 42.4, 1.4 and 279.6."""
    net = fitted(typed(DRUGS, DRUG_COUNTS), generators("AC,AM,CM"), solver)
    table = net.fitted_counts_.transpose(["A", "C", "M"])
    shown = [f"{table.at(A=a, C=c, M=m):.1f}" for a in ("yes", "no") for c in ("yes", "no") for m in ("yes", "no")]
    assert shown == ["910.4", "538.6", "44.6", "455.4", "3.6", "42.4", "1.4", "279.6"]


ADMISSION_MODELS = [
    ("[Admit Dept][Gender Dept]", 21.7355067781328, 19.9384133778807, 6),
    ("[Admit Dept][Gender Dept][Admit Gender]", 20.2042753272419, 18.8242807780978, 5),
    ("[Admit][Gender Dept]", 877.056413219775, 797.704502930847, 11),
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("model", "deviance", "pearson", "df"), ADMISSION_MODELS)
def test_admissions(model: str, deviance: float, pearson: float, df: int, solver: str) -> None:
    """Figures of R's loglin, converged."""
    net = fitted(typed(ADMISSIONS, ADMISSIONS_COUNTS), generators(model), solver)
    check(net, {"lrt": deviance, "pearson": pearson, "df": df})


@pytest.mark.parametrize("solver", SOLVERS)
def test_lizards(solver: str) -> None:
    """Height and diameter of the perch are independent given the species: figures of R's loglin."""
    net = fitted(typed(LIZARDS, LIZARD_COUNTS), [("species", "height"), ("species", "diam")], solver)
    check(
        net, {"lrt": 2.02564664987629, "pearson": 2.01736366813788, "df": 2, "minus2logL_multinomial": 1604.42581805881}
    )


# -- read in place ---------------------------------------------------------------------------------------------------

FOUR = ["smoke", "mental", "phys", "systol"]
CYCLE: list[tuple[str, ...]] = [("smoke", "mental"), ("mental", "phys"), ("phys", "systol"), ("systol", "smoke")]
SIX = [*FOUR, "protein", "family"]
REINIS: dict[str, tuple[list[str], list[tuple[str, ...]]]] = {
    "reinis_dm1": (FOUR, [("smoke", "systol"), ("smoke", "mental", "phys")]),
    "reinis_4cycle": (FOUR, CYCLE),
    "reinis_all2way": (SIX, list(combinations(SIX, 2))),
    "reinis_computed_model": (
        SIX,
        [("smoke", "phys", "protein"), ("smoke", "systol", "protein"), ("mental", "phys"), ("mental", "family")],
    ),
    "reinis_whittaker_graph": (
        SIX,
        [("family", "mental"), ("mental", "phys", "smoke", "protein"), ("smoke", "systol", "protein")],
    ),
    "reinis_ci": (
        ["systol", "smoke", "family", "phys"],
        [("systol", "family", "phys"), ("smoke", "family", "phys")],
    ),
}


@needs_data
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", REINIS)
def test_risk_factors_for_heart_disease(name: str, solver: str) -> None:
    variables, cliques = REINIS[name]
    expected = figures(name)
    net = fitted(collapsed(stored("reinis.csv"), variables), cliques, solver)
    check(net, expected["recomputed_R422"])
    published = expected.get("published") or {}
    if "deviance" in published:
        assert printed(net.deviance_, str(published["deviance"]))
    if "dim" in published:
        assert net.report_.n_params == published["dim"]
        assert printed(-2 * net.report_.log_likelihood, str(published["minus2logL"]))
        assert printed(net.report_.aic, str(published["aic"]))
        assert printed(net.report_.bic, str(published["bic"]))
        alone = fitted(collapsed(stored("reinis.csv"), variables), [(name,) for name in variables])
        assert printed(alone.deviance_ - net.deviance_, str(published["ideviance"]))
        assert alone.df_ - net.df_ == published["idf"]


@needs_data
@pytest.mark.parametrize("solver", SOLVERS)
def test_variables_that_no_clique_names_are_uniform(solver: Any) -> None:
    expected = figures("reinis_4cycle_full")
    net = sf.MarkovNetwork(CYCLE, states={name: ["y", "n"] for name in SIX}, solver=solver).fit(stored("reinis.csv"))
    check(net, expected["recomputed_R422"])
    assert printed(net.deviance_, str(expected["published"]["lrt"]))
    assert printed(net.chi2_, str(expected["published"]["pearson"]))


@needs_data
@pytest.mark.parametrize("solver", SOLVERS)
def test_satisfaction_with_housing(solver: str) -> None:
    expected = figures("housing_ips")
    net = fitted(
        stored("../glm/housing.csv"),
        [("Infl", "Type", "Cont"), ("Sat", "Infl"), ("Sat", "Type"), ("Sat", "Cont")],
        solver,
    )
    check(net, expected["recomputed_R422"])


@needs_data
def test_typed_tables_are_those_of_the_folder() -> None:
    for name, table in (
        ("HairEyeColor.csv", typed(HAIR_EYE_SEX, HAIR_EYE_SEX_COUNTS)),
        ("UCBAdmissions.csv", typed(ADMISSIONS, ADMISSIONS_COUNTS)),
        ("lizard.csv", typed(LIZARDS, LIZARD_COUNTS)),
    ):
        other = stored(name).reorder_levels(table.index.names)
        pandas.testing.assert_series_equal(other.sort_index(), table.sort_index(), check_names=False)
    survey = collapsed(stored("DaytonSurvey.csv"), ["alcohol", "cigarette", "marijuana"])
    assert [survey[a, c, m] for a in ("Yes", "No") for c in ("Yes", "No") for m in ("Yes", "No")] == DRUG_COUNTS


@needs_data
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton"])
@pytest.mark.parametrize("name", ["indep", "roweff", "coleff", "linlin"])
def test_mental_health_by_scores(name: str, solver: str) -> None:
    """Association by scores 1, 2, ... : real-valued features besides tables."""
    scores = {state: place for place, state in enumerate(["Well", "Mild", "Moderate", "Impaired"], start=1)}
    status: list[Any] = {
        "indep": [],
        "linlin": [sf.Feature(("ses", "mental"), lambda s, m: s * scores[m])],
        "roweff": [sf.Feature(("ses", "mental"), lambda s, m, k=k: s * (m == k)) for k in scores],
        "coleff": [sf.Feature(("ses", "mental"), lambda s, m, k=k: scores[m] * (s == k)) for k in range(1, 7)],
    }[name]
    expected = figures("Mental_assoc")
    net = fitted(stored("Mental.csv"), [("ses",), ("mental",), *status], solver)
    assert net.df_ == expected["published"][name]["df"]
    assert net.deviance_ == pytest.approx(expected["recomputed_R422"][name]["deviance"], rel=1e-8)


@needs_data
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_sparse_table_of_genes(solver: str) -> None:
    """Seventy rows in sixty-four cells: no maximum; R counts all cells, gRim also those that can be positive."""
    table = stored("mildew_genes.csv")
    expected = figures("mildew_sat")["recomputed_R422"]
    genes = ["la10", "locc", "mp58", "c365", "p53a", "a367"]
    net = fitted(table, [tuple(genes)], solver)
    check(net, {**expected["saturated"], "pearson": 0.0})
    assert net.report_.certificate.exists is False
    net = fitted(table, [(gene,) for gene in genes], solver)
    check(net, expected["indep"])
    assert net.report_.certificate.exists is True
    net = fitted(table, [tuple(genes[:4]), tuple(genes[2:])], solver)
    check(net, expected["decomp_la10_locc_mp58_c365__mp58_c365_p53a_a367"])
    assert net.report_.certificate.exists is False


@needs_data
def test_dimensions_of_sparse_models_as_grim_adjusts_them() -> None:
    """Cells that can be positive, less separators: 22 - 1 for the saturated model, 19 of 27 for two blocks of four."""
    table = stored("mildew_genes.csv")
    genes = list(table.index.names)
    joint = table.sort_index().to_numpy().reshape([2] * 6)
    cards = dict.fromkeys(genes, 2)
    for scopes, nominal, adjusted in (
        ([tuple(genes)], 63, 21),
        ([tuple(genes[:4]), tuple(genes[2:])], 27, 19),
    ):
        observed = np.concatenate([margin(joint, scope, genes).ravel() for scope in scopes])
        face = smallest_face(cards, scopes, observed, 70.0)
        assert (table_rank(scopes, cards), dimensions(face)[0]) == (nominal, adjusted)
