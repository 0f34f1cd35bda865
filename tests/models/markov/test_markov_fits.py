"""Fits of Markov networks: published tables, every method against every other, priors, existence, certificates."""

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

import suffice as sf
from certificates import slope_of
from log_linear import design_of, law_of, proportional_fitting, table_features
from suffice.kernels import choice


def table(states: Any, counts: Any) -> Any:
    domain = sf.Domain([sf.Variable.discrete(name, labels) for name, labels in states.items()])
    return sf.Table(domain, np.array(counts, float).reshape([len(labels) for labels in states.values()]))


# Hair and eye colour of students (Snee 1974), Berkeley admissions (Bickel et al. 1975), coronary heart disease
# (Reinis et al. 1981), lizards (Schoener 1968), drug use (Agresti 2002), mental health (Srole et al. 1962).
HAIR_EYE = table(
    {
        "Hair": ["Black", "Brown", "Red", "Blond"],
        "Eye": ["Brown", "Blue", "Hazel", "Green"],
        "Sex": ["Male", "Female"],
    },
    [32, 36, 11, 9, 10, 5, 3, 2, 53, 66, 50, 34, 25, 29, 15, 14, 10, 16, 10, 7, 7, 7, 7, 7, 3, 4, 30, 64, 5, 5, 8, 8],
)
ADMISSIONS = table(
    {"Admit": ["yes", "no"], "Gender": ["Male", "Female"], "Dept": list("ABCDEF")},
    [512, 353, 120, 138, 53, 22, 89, 17, 202, 131, 94, 24, 313, 207, 205, 279, 138, 351, 19, 8, 391, 244, 299, 317],
)
HEART = table(
    {name: ["y", "n"] for name in ("smoke", "mental", "phys", "systol", "protein", "family")},
    [
        *(44, 5, 23, 7, 35, 4, 24, 4, 129, 9, 50, 9, 109, 14, 51, 5, 112, 21, 70, 14, 80, 11, 73, 13, 12, 1, 7, 2),
        *(7, 5, 7, 4, 40, 7, 32, 3, 12, 3, 25, 0, 145, 17, 80, 16, 67, 17, 63, 14, 67, 9, 66, 14, 33, 8, 57, 11),
        *(23, 4, 13, 3, 9, 2, 16, 4),
    ],
)
LIZARDS = table(
    {"diam": ["<=4", ">4"], "height": [">4.75", "<=4.75"], "species": ["anoli", "dist"]},
    [32, 61, 86, 73, 11, 41, 35, 70],
)
DRUGS = table({name: ["yes", "no"] for name in "ACM"}, [911, 538, 44, 456, 3, 43, 2, 279])
MENTAL = table(
    {"ses": [1, 2, 3, 4, 5, 6], "mental": [1, 2, 3, 4]},
    [64, 94, 58, 46, 57, 94, 54, 40, 57, 105, 65, 60, 72, 141, 77, 94, 36, 97, 54, 78, 21, 71, 54, 71],
)

CYCLE = [("smoke", "mental"), ("mental", "phys"), ("phys", "systol"), ("systol", "smoke")]
ALL_PAIRS = list(itertools.combinations(HEART.variables, 2))

#: Table, cliques, likelihood ratio, Pearson's statistic (None: not given), degrees of freedom; from R's loglin.
PUBLISHED: dict[str, Any] = {
    "hair pairs": (HAIR_EYE, [("Hair", "Eye"), ("Hair", "Sex"), ("Eye", "Sex")], 6.76125041877214, 6.86902723863615, 9),
    "hair independent": (HAIR_EYE, ["Hair", "Eye", "Sex"], 166.300139500487, 164.924717384537, 24),
    "hair given sex": (HAIR_EYE, [("Hair", "Sex"), ("Eye", "Sex")], 156.677889908881, 147.944022561565, 18),
    "hair with eye": (HAIR_EYE, [("Hair", "Eye"), "Sex"], 19.8565610359708, 19.5671227310065, 15),
    "admit by dept": (ADMISSIONS, [("Admit", "Dept"), ("Gender", "Dept")], 21.7355067781328, 19.9384133778807, 6),
    "admit pairs": (
        ADMISSIONS,
        [("Admit", "Dept"), ("Gender", "Dept"), ("Admit", "Gender")],
        20.2042753272419,
        18.8242807780978,
        5,
    ),
    "heart cycle": (HEART, CYCLE, 27.4035277060338, 27.2784406668558, 7),
    "heart decomposable": (
        HEART,
        [("smoke", "systol"), ("smoke", "mental", "phys")],
        3.8020173992236,
        3.76977802359572,
        6,
    ),
    "heart pairs": (HEART, ALL_PAIRS, 47.3509787566652, 45.0390185228719, 42),
    "heart mixed": (
        HEART,
        [("smoke", "phys", "protein"), ("smoke", "systol", "protein"), ("mental", "phys"), ("mental", "family")],
        57.3463381785254,
        55.4210725536441,
        48,
    ),
    "lizards": (LIZARDS, [("species", "height"), ("species", "diam")], 2.02564664987629, 2.01736366813788, 2),
    "drugs A,C,M": (DRUGS, ["A", "C", "M"], 1286.01995442367, 1411.38602530987, 4),
    "drugs AC,M": (DRUGS, [("A", "C"), "M"], 843.826643665753, 704.907105719754, 3),
    "drugs AC,AM": (DRUGS, [("A", "C"), ("A", "M")], 497.369275194649, 443.761110668303, 2),
    "drugs AC,AM,CM": (DRUGS, [("A", "C"), ("A", "M"), ("C", "M")], 0.373985870142463, 0.40110051680735, 1),
    "mental independent": (MENTAL, ["ses", "mental"], 47.4178467918974, None, 15),
}


@pytest.mark.parametrize(("counts", "cliques", "lrt", "pearson", "df"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_deviances(counts: Any, cliques: Any, lrt: Any, pearson: Any, df: Any) -> None:
    mrf = sf.MarkovNetwork(cliques).fit(counts)
    assert mrf.deviance_ == pytest.approx(lrt, abs=1e-8)
    assert mrf.df_ == df
    if pearson is not None:
        assert mrf.chi2_ == pytest.approx(pearson, abs=1e-6)
    assert mrf.converged_
    assert slope_of(mrf.report_.certificate) < 1e-10
    assert mrf.report_.certificate.exists is True


def test_published_information_criteria() -> None:
    """R's gRim prints for the cycle: -2 log L 9414.99, 8 parameters, AIC 9430.99, BIC 9475.13."""
    mrf = sf.MarkovNetwork(CYCLE).fit(HEART)
    assert mrf.n_params_ == 8
    assert -2 * mrf.report_.log_likelihood == pytest.approx(9414.98583161555, abs=1e-8)
    assert mrf.aic_ == pytest.approx(9430.99, abs=0.005)
    assert mrf.bic_ == pytest.approx(9475.13, abs=0.005)


def test_variables_without_a_term_are_uniform() -> None:
    """The cycle on the whole six-way table, protein and family uniform: 1233.054 and 1198.018 on 55."""
    mrf = sf.MarkovNetwork(CYCLE, states={"protein": ["y", "n"], "family": ["y", "n"]}).fit(HEART)
    assert (mrf.deviance_, mrf.chi2_, mrf.df_) == pytest.approx((1233.05437360422, 1198.01778703295, 55), abs=1e-6)
    assert "'protein', 'family': uniform" in mrf.report_.warnings[-1]
    np.testing.assert_allclose(mrf.marginal("family").values, [0.5, 0.5], rtol=1e-14)


def test_linear_by_linear_association() -> None:
    """A real-valued feature beside two tables: deviance 9.8951 on 14, slope 0.0906866 (R's glm)."""
    score = sf.Feature(("ses", "mental"), lambda ses, mental: ses * mental, name="slope")
    mrf = sf.MarkovNetwork(["ses", "mental", score]).fit(MENTAL)
    assert mrf.deviance_ == pytest.approx(9.89512355018133, abs=1e-8)
    assert mrf.df_ == 14
    assert mrf.weights_[-1] == pytest.approx(0.0906866088096036, abs=1e-8)
    assert "Likelihood ratio  9.89512 on 14 df, p = " in str(mrf.summary())


def test_expected_counts_and_text() -> None:
    mrf = sf.MarkovNetwork(PUBLISHED["hair pairs"][1]).fit(HAIR_EYE)
    fitted = mrf.fitted_counts_
    for pair in PUBLISHED["hair pairs"][1]:
        np.testing.assert_allclose(fitted.marginal(pair).values, HAIR_EYE.marginal(pair).values, atol=1e-7)
    gap = HAIR_EYE.values - fitted.transpose(HAIR_EYE.variables).values
    pearson = (gap**2 / fitted.transpose(HAIR_EYE.variables).values).sum()
    assert mrf.chi2_ == pytest.approx(pearson, rel=1e-9)
    assert mrf.p_value_ == pytest.approx(0.66196, abs=5e-6)  # As R prints it.
    report: Any = mrf.report_
    entropy = -(HAIR_EYE.values / 592 * np.log(HAIR_EYE.values / 592)).sum()
    # KL(data || model) = -H(data) - log-likelihood / N, and twice N times that is the deviance.
    assert report.kl_divergence == pytest.approx(-entropy - report.log_likelihood / 592, abs=1e-12)
    assert 2 * 592 * report.kl_divergence == pytest.approx(mrf.deviance_, abs=1e-9)


# -- every method ----------------------------------------------------------------------------------------------------

TABLE_SOLVERS = ["ipf", "gis", "gis-cyclic", "lbfgs", "newton", "newton-cg", "cg", "ascent", "ascent-potentials"]
FEATURE_SOLVERS = [name for name in TABLE_SOLVERS if name not in ("ipf", "ascent-potentials")]


@pytest.mark.parametrize("solver", TABLE_SOLVERS)
def test_all_methods_reach_the_same_law(solver: Any) -> None:
    reference = sf.MarkovNetwork(CYCLE, solver="newton").fit(HEART).to_joint()
    mrf = sf.MarkovNetwork(CYCLE, solver=solver).fit(HEART)
    assert mrf.converged_
    assert mrf.to_joint().allclose(reference, rtol=1e-7)
    assert slope_of(mrf.report_.certificate) < 2e-10
    assert mrf.n_iter_ > 0
    history = np.array(mrf.history_)
    assert history[-1] == pytest.approx(mrf.report_.log_likelihood, rel=1e-12)
    assert (np.diff(history) > -1e-9 * abs(history[-1])).all()


@pytest.mark.parametrize("solver", FEATURE_SOLVERS)
def test_all_methods_reach_the_same_weights_of_features(solver: Any) -> None:
    """An Ising model: its features are identified and negative in places, which scaling shifts away."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 0)]
    rng = np.random.default_rng(0)
    truth = sf.MarkovNetwork.ising(edges).with_weights(rng.normal(0, 0.4, 8))
    rows = truth.sample(500, random_state=1)
    states = {n: [-1, 1] for n in range(4)}
    features: list[Any] = [
        *(lambda x, n=n: x[n] for n in range(4)),
        *(lambda x, a=a, b=b: x[a] * x[b] for a, b in edges),
    ]
    design = design_of(features, states)
    observed = np.mean([[f({n: rows[n][i] for n in rows}) for f in features] for i in range(500)], axis=0)

    def loss(w: Any) -> Any:
        log_z, law = law_of(design, w)
        return log_z - w @ observed, law @ design - observed

    best = minimize(loss, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-9})
    mrf = sf.MarkovNetwork.ising(edges, solver=solver).fit(rows)
    np.testing.assert_allclose(mrf.weights_, best.x, atol=1e-6)
    assert mrf.report_.log_likelihood == pytest.approx(-500 * best.fun, abs=1e-8)
    assert slope_of(mrf.report_.certificate) < 2e-10


def test_a_loop_of_three_by_proportional_fitting() -> None:
    """Three ternary variables and their pairs, 10,000 rows; against IPF on the joint table."""
    counts = np.array(
        [73, 1, 2421, 25, 1, 2, 1262, 1186, 667, 2, 3, 173, 3, 239, 1, 28, 50, 79, 5, 138, 148, 3482, 1, 6, 1, 2, 1],
        float,
    ).reshape(3, 3, 3)
    mrf = sf.MarkovNetwork([(1, 2), (1, 3), (2, 3)]).fit(counts, columns=[1, 2, 3])
    p = counts / counts.sum()
    joint = proportional_fitting({(0, 1): p.sum(2), (0, 2): p.sum(1), (1, 2): p.sum(0)}, (3, 3, 3), 3000)
    np.testing.assert_allclose(mrf.to_joint().values, joint, atol=1e-9)
    # Margins only, with all their digits: the same law.
    margins = {(1, 2): p.sum(2), (1, 3): p.sum(1), (2, 3): p.sum(0)}
    alone = sf.MarkovNetwork([(1, 2), (1, 3), (2, 3)]).fit(margins)
    np.testing.assert_allclose(alone.to_joint().values, joint, atol=1e-9)
    assert alone.report_.weight == pytest.approx(1.0)
    with pytest.raises(sf.EstimateError, match="no joint counts"):
        alone.deviance_  # noqa: B018


def test_proportional_fitting_keeps_the_partition_function() -> None:
    """From potentials of one Z is the number of joint states, and no update changes it."""
    mrf = sf.MarkovNetwork(CYCLE, solver="ipf").fit(HEART)
    assert mrf.log_partition_ == pytest.approx(math.log(16), abs=1e-12)


def test_few_weights_on_many_cells() -> None:
    """One weight shared by all edges of a 6 x 6 grid, one by all nodes: two weights on 312 cells."""
    edges = sf.MarkovNetwork.grid_edges(6, 6)
    nodes = [((r, c),) for r in range(6) for c in range(6)]
    terms = [
        sf.Feature(nodes, lambda x: x, name="field"),
        sf.Feature(list(edges), lambda x, y: x * y, name="coupling"),
    ]
    states = {node: [-1, 1] for (node,) in nodes}
    truth = sf.MarkovNetwork(terms, states=states).with_weights([0.1, 0.25])
    rows = truth.sample(400, random_state=0)
    mrf = sf.MarkovNetwork(terms, states=states, check_existence=False).fit(rows)
    spins = np.array([rows[node] for (node,) in nodes])
    observed = [spins.sum(axis=0).mean(), np.mean([rows[a] * rows[b] for a, b in edges], axis=1).sum()]
    _, expected = mrf.fitted_.family.moments(mrf.weights_)
    np.testing.assert_allclose(expected, observed, atol=1e-9)
    np.testing.assert_allclose(mrf.weights_, [0.1, 0.25], atol=4 * mrf.standard_errors_.max())
    assert mrf.n_params_ == 2
    assert "Newton" in mrf.report_.method


TEN_ROWS = [
    *([0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 0, 1]),
    *([1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 0, 0], [0, 1, 0]),
]


def test_a_chain_on_ten_rows() -> None:
    """Counts m(0,0,1) = 3, m(X1=1, X2=0) = 3, m(X1=0, X2=0) = 4; one sweep of IPF is the closed form p12 p23 / p2."""
    chain = [("X1", "X2"), ("X2", "X3")]
    mrf = sf.MarkovNetwork(chain).fit(TEN_ROWS, columns=["X1", "X2", "X3"])
    counts = mrf.statistics_[sf.Counts(("X1", "X2", "X3"))].dense()
    assert (counts[0, 0, 1], counts.sum(axis=2)[1, 0], counts.sum(axis=2)[0, 0]) == (3, 3, 4)
    p = counts / 10
    formula = p.sum(axis=2)[:, :, None] * p.sum(axis=0)[None] / p.sum(axis=(0, 2))[None, :, None]
    np.testing.assert_allclose(mrf.to_joint().values, formula, rtol=1e-13)
    with pytest.warns(sf.ConvergenceWarning):
        swept = sf.MarkovNetwork(chain, solver="ipf", max_iter=1, tolerance=0.0).fit(
            TEN_ROWS, columns=["X1", "X2", "X3"]
        )
    np.testing.assert_allclose(swept.to_joint().values, formula, rtol=1e-13)


def test_ascent_on_potentials_keeps_them_positive() -> None:
    """From psi = (.05, 1) the plain step psi += 3 (p_emp - p) / psi would lead to a negative potential."""
    counts = table({"A": [0, 1]}, [1, 999])
    start = np.log([0.05, 1.0])
    p = np.array([0.05, 1.0]) / 1.05
    assert (np.array([0.05, 1.0]) + 3 * (np.array([0.001, 0.999]) - p) / np.array([0.05, 1.0])).min() < 0
    mrf = sf.MarkovNetwork(["A"], solver="ascent-potentials", start=start).fit(counts)
    assert (mrf.potential("A").values > 0).all()
    np.testing.assert_allclose(mrf.marginal("A").values, [0.001, 0.999], atol=1e-9)


def test_two_features_have_a_closed_form() -> None:
    """1{A=1, B=1} and 1{B=0, C=1} exclude each other: theta_k = log(2 p_k / (1 - p_1 - p_2)) = log(4/3), log(10/3)."""
    features = [
        sf.Feature(("A", "B"), lambda a, b: a == 1 and b == 1),
        sf.Feature(("B", "C"), lambda b, c: b == 0 and c == 1),
    ]
    mrf = sf.MarkovNetwork(features).fit(TEN_ROWS, columns=["A", "B", "C"])
    np.testing.assert_allclose(mrf.weights_, [0.28768207245178085, 1.203972804325936], atol=1e-9)
    error = np.sqrt(np.diagonal(np.linalg.inv(10 * mrf.information_)))
    np.testing.assert_allclose(mrf.standard_errors_, error, rtol=1e-10)


# -- decomposable models ---------------------------------------------------------------------------------------------


def five_variables() -> Any:
    rng = np.random.default_rng(7)
    counts = rng.poisson(4.0, (2, 3, 2, 2, 3)).astype(float) + 1
    states = {n: list(range(k)) for n, k in zip((1, 2, 3, 4, 5), counts.shape, strict=True)}
    return table(states, counts)


def test_closed_form_of_a_decomposable_model() -> None:
    """Cliques 123, 234, 245 with separators 23 and 24: psi_123 psi_234 psi_245 = p_123 p_234 p_245 / (p_23 p_24)."""
    counts = five_variables()
    mrf = sf.MarkovNetwork([(1, 2, 3), (2, 3, 4), (2, 4, 5)]).fit(counts)
    p = counts.normalize()
    formula = p.marginal((1, 2, 3)) * (p.marginal((2, 3, 4)) / p.marginal((2, 3)))
    formula = formula * (p.marginal((2, 4, 5)) / p.marginal((2, 4)))
    assert mrf.report_.method.startswith("closed form")
    assert mrf.log_partition_ == pytest.approx(0.0, abs=1e-14)
    assert mrf.to_joint().allclose(formula, rtol=1e-12)
    scaled = sf.MarkovNetwork([(1, 2, 3), (2, 3, 4), (2, 4, 5)], solver="ipf").fit(counts)
    assert scaled.to_joint().allclose(formula, rtol=1e-9)
    # Dividing by every intersection of two cliques, {2} included, or by none, does not give a law.
    assert (formula / p.marginal((2,))).values.sum() == pytest.approx(3.0, rel=1e-9)
    product = p.marginal((1, 2, 3)) * p.marginal((2, 3, 4)) * p.marginal((2, 4, 5))
    assert product.values.sum() < 0.1
    assert not product.normalize().marginal((1, 2, 3)).allclose(p.marginal((1, 2, 3)), rtol=1e-3)


def test_a_star_divides_its_centre_as_often_as_it_separates() -> None:
    counts = five_variables()
    mrf = sf.MarkovNetwork([(2, 1), (2, 3), (2, 4), (5,)]).fit(counts)
    p = counts.normalize()
    centre = p.marginal((2,))
    formula = p.marginal((1, 2)) * p.marginal((2, 3)) * p.marginal((2, 4)) / centre / centre * p.marginal((5,))
    assert mrf.to_joint().allclose(formula, rtol=1e-12)


def test_closed_form_with_zero_counts() -> None:
    counts = table({"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}, [3, 0, 0, 0, 1, 2, 0, 4, 0, 0, 5, 1])
    mrf = sf.MarkovNetwork([("A", "B"), ("B", "C")]).fit(counts)
    p = counts.normalize()
    formula = p.marginal(("A", "B")) * p.marginal(("B", "C")) / p.marginal(("B",))
    assert mrf.to_joint().allclose(formula, rtol=1e-12)
    assert mrf.report_.certificate.exists is False
    assert mrf.weights_[1] == -math.inf
    assert any("A=0, B=1" in text for text in mrf.report_.certificate.directions)
    assert math.isfinite(mrf.report_.log_likelihood)
    assert mrf.score({"A": [0], "B": [1], "C": [0]}) == -math.inf


def test_a_method_that_cannot_do_it_says_so() -> None:
    with pytest.raises(sf.EstimateError, match="no chord"):
        sf.MarkovNetwork(CYCLE, solver="closed-form").fit(HEART)
    with pytest.raises(sf.OptionError, match="fits tables"):
        sf.MarkovNetwork.ising([(0, 1)], solver="ipf").fit({0: [1, -1], 1: [1, 1]})
    with pytest.raises(sf.OptionError, match="no prior"):
        sf.MarkovNetwork(CYCLE, solver="ipf", prior=sf.Normal(variance=1.0)).fit(HEART)
    with pytest.raises(sf.OptionError, match="owlqn"):
        sf.MarkovNetwork(CYCLE, solver="owlqn").fit(HEART)
    with pytest.raises(sf.OptionError, match="solver is 'magic'"):
        sf.MarkovNetwork(CYCLE, solver="magic")  # type: ignore[arg-type]


# -- priors ----------------------------------------------------------------------------------------------------------

STATES3 = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}
CLIQUES3 = [("A", "B"), ("B", "C"), ("C", "A")]
COUNTS3 = table(STATES3, [4, 1, 0, 2, 7, 3, 2, 2, 5, 0, 1, 6])


def penalised_optimum(penalty: Any) -> Any:
    """The maximum of the SUM of log-likelihoods less a penalty, by a general optimiser on the enumerated law."""
    design = design_of(table_features(CLIQUES3, STATES3), STATES3)
    counts = COUNTS3.values.ravel()

    def loss(w: Any) -> Any:
        log_z, law = law_of(design, w)
        value, slope = penalty(w)
        return counts.sum() * log_z - counts @ design @ w + value, counts.sum() * (
            law @ design
        ) - counts @ design + slope

    return minimize(loss, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 5000})


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton", "newton-cg", "cg", "ascent"])
@pytest.mark.parametrize("kind", ["isotropic", "diagonal", "full"])
def test_normal_priors(kind: Any, solver: Any) -> None:
    rng = np.random.default_rng(3)
    k = 16
    mean = rng.normal(size=k)
    root = rng.normal(size=(k, k))
    covariance = {
        "isotropic": 0.7 * np.eye(k),
        "diagonal": np.diag(rng.uniform(0.2, 3.0, k)),
        "full": root @ root.T / k + 0.1 * np.eye(k),
    }[kind]
    prior = {
        "isotropic": sf.Normal(mean=mean, variance=np.full(k, 0.7)),
        "diagonal": sf.Normal(mean=mean, variance=np.diagonal(covariance)),
        "full": sf.MultivariateNormal(mean, covariance),
    }[kind]
    precision = np.linalg.inv(covariance)
    best = penalised_optimum(lambda w: ((w - mean) @ precision @ (w - mean) / 2, precision @ (w - mean)))
    mrf = sf.MarkovNetwork(CLIQUES3, prior=prior, solver=solver).fit(COUNTS3)
    np.testing.assert_allclose(mrf.weights_, best.x, atol=2e-6)
    assert mrf.report_.objective == pytest.approx(-best.fun, abs=1e-8)
    assert mrf.report_.certificate.exists is True
    assert mrf.report_.certificate.bound
    # The slope of the sum, N (observed - expected), equals the slope of the penalty: nothing is divided by N alone.
    _, expected = mrf.fitted_.family.moments(mrf.weights_)
    observed = np.concatenate([COUNTS3.marginal(c).values.ravel() for c in CLIQUES3])
    np.testing.assert_allclose(observed - 33 * expected, precision @ (mrf.weights_ - mean), atol=1e-7)


def test_the_certificate_bounds_what_is_left() -> None:
    prior = sf.Normal(variance=2.0)
    best = sf.MarkovNetwork(CLIQUES3, prior=prior).fit(COUNTS3).report_.objective
    for steps in (0, 1, 2, 4):
        with pytest.warns(sf.ConvergenceWarning):
            mrf = sf.MarkovNetwork(CLIQUES3, prior=prior, solver="lbfgs", max_iter=steps).fit(COUNTS3)
        left = (best - mrf.report_.objective) / 33
        bound = mrf.report_.certificate.value_gap
        assert bound is not None
        assert 0 < left <= bound
        assert not mrf.converged_


def test_the_decrement_estimates_what_is_left() -> None:
    best = sf.MarkovNetwork(CYCLE).fit(HEART).report_.log_likelihood
    with pytest.warns(sf.ConvergenceWarning):
        mrf = sf.MarkovNetwork(CYCLE, solver="ipf", max_iter=1).fit(HEART)
    left = (best - mrf.report_.log_likelihood) / 1841
    assert left > 1e-9
    assert mrf.report_.certificate.value_gap == pytest.approx(left, rel=0.3)
    assert not mrf.report_.certificate.bound


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_laplace_prior_meets_its_conditions(scale: Any) -> None:
    """At the maximum |N (observed - expected)| is 1/scale where a weight is not zero, and at most that where it is."""
    mrf = sf.MarkovNetwork(CLIQUES3, prior=sf.Laplace(scale=scale)).fit(COUNTS3)
    _, expected = mrf.fitted_.family.moments(mrf.weights_)
    slope = np.concatenate([COUNTS3.marginal(c).values.ravel() for c in CLIQUES3]) - 33 * expected
    used = mrf.weights_ != 0
    np.testing.assert_allclose(slope[used], np.sign(mrf.weights_[used]) / scale, atol=1e-6)
    assert (np.abs(slope[~used]) <= 1 / scale + 1e-6).all()
    assert (~used).any()
    assert "Laplace" in mrf.report_.method
    moved = sf.MarkovNetwork(CLIQUES3, prior=sf.Laplace(scale=1e-3, mean=0.25)).fit(COUNTS3)
    np.testing.assert_array_equal(moved.weights_, 0.25)


def test_priors_that_do_not_fit() -> None:
    with pytest.raises(sf.OptionError, match="16 weights"):
        sf.MarkovNetwork(CLIQUES3, prior=sf.Normal(variance=[1.0, 2.0])).fit(COUNTS3)
    with pytest.raises(sf.OptionError, match="pseudo-counts"):
        sf.MarkovNetwork(CLIQUES3, prior=1.0).fit(COUNTS3)


# -- errors of weights -----------------------------------------------------------------------------------------------


def test_the_error_of_a_log_odds_ratio() -> None:
    """In a saturated 2 x 2 table its variance is the sum of 1 / count."""
    counts = table({"A": [0, 1], "B": [0, 1]}, [10, 20, 30, 15])
    mrf = sf.MarkovNetwork([("A", "B")]).fit(counts)
    contrast = np.array([1.0, -1.0, -1.0, 1.0])
    variance = contrast @ np.linalg.pinv(75 * mrf.information_) @ contrast
    assert variance == pytest.approx(1 / 10 + 1 / 20 + 1 / 30 + 1 / 15, rel=1e-10)
    assert contrast @ mrf.weights_ == pytest.approx(math.log(10 * 15 / (20 * 30)), abs=1e-10)
    bayes = sf.MarkovNetwork([("A", "B")], prior=sf.Normal(variance=0.5)).fit(counts)
    inverse = np.linalg.inv(75 * bayes.information_ + 2 * np.eye(4))
    np.testing.assert_allclose(bayes.standard_errors_, np.sqrt(np.diagonal(inverse)), rtol=1e-10)


def test_gradient_and_hessian_of_the_sum_carry_the_number_of_rows() -> None:
    """Complex steps of L(w) = sum over rows: slope N (observed - expected), Hessian -N Cov[f]."""
    design = design_of(table_features(CLIQUES3, STATES3), STATES3)
    counts = COUNTS3.values.ravel()
    weights = np.random.default_rng(0).normal(size=16)
    mrf = sf.MarkovNetwork(CLIQUES3, states=STATES3).with_weights(weights)

    def slope(w: Any) -> Any:
        return counts @ design - counts.sum() * (law_of(design, w)[1] @ design)

    _, expected = mrf.fitted_.family.moments(weights)
    for k in range(16):
        step = weights.astype(complex)
        step[k] += 1e-30j
        total = (counts @ design @ step - counts.sum() * law_of(design, step)[0]).imag / 1e-30
        assert total == pytest.approx((counts @ design - 33 * expected)[k], abs=1e-10)
        np.testing.assert_allclose(slope(step).imag / 1e-30, -33 * mrf.information_[k], atol=1e-10)


# -- existence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "ipf", "gis-cyclic", "lbfgs", "newton", "newton-cg", "cg"])
def test_positive_margins_without_a_maximum(solver: Any) -> None:
    """Haberman's example: 2 x 2 x 2 with zeros at 000 and 111 only; all pair margins are positive.

    The limit of the likelihood is the law on the other six cells; there the pairs fit the counts exactly.
    """
    counts = table({n: [0, 1] for n in "ABC"}, [0, 3, 2, 4, 5, 1, 6, 0])
    pairs = [("A", "B"), ("A", "C"), ("B", "C")]
    mrf = sf.MarkovNetwork(pairs, solver=solver).fit(counts)
    assert mrf.report_.certificate.exists is False
    assert mrf.report_.certificate.directions
    assert mrf.converged_
    np.testing.assert_allclose(mrf.to_joint().values, counts.values / 21, atol=1e-8)
    assert mrf.to_joint().values[0, 0, 0] == 0
    best = (counts.values[counts.values > 0] * np.log(counts.values[counts.values > 0] / 21)).sum()
    assert mrf.report_.log_likelihood == pytest.approx(best, abs=1e-7)
    # No weight runs by itself: those that the direction moves have no limit of their own, and infinite errors.
    together = np.isnan(mrf.weights_)
    assert 0 < together.sum() < 12
    assert (np.isinf(mrf.standard_errors_) == together).all()
    assert "together" in mrf.report_.certificate.directions[0]


@pytest.mark.parametrize("solver", TABLE_SOLVERS)
def test_zero_margins_give_the_extended_maximum(solver: Any) -> None:
    counts = table(STATES3, [4, 0, 0, 0, 7, 3, 2, 2, 5, 0, 1, 6])  # A=0, B=1 and B=1, C=1 never occur.
    reference = proportional_fitting(
        {(0, 1): counts.values.sum(2) / 30, (1, 2): counts.values.sum(0) / 30, (0, 2): counts.values.sum(1) / 30},
        (2, 3, 2),
        4000,
    )
    mrf = sf.MarkovNetwork(CLIQUES3, solver=solver, max_iter=100_000).fit(counts)
    np.testing.assert_allclose(mrf.to_joint().values, reference, atol=2e-8)
    assert mrf.report_.certificate.exists is False
    assert np.flatnonzero(mrf.weights_ == -math.inf).tolist() == [1, 9]
    assert mrf.standard_errors_[1] == math.inf
    assert np.isfinite(mrf.fitted_.finite).all()


def test_a_feature_that_never_occurs() -> None:
    """Its mean is at the edge of what it can be: the weight falls without end, and the event gets probability 0."""
    both = sf.Feature(("A", "B"), lambda a, b: a == 1 and b == 1, name="both")
    mrf = sf.MarkovNetwork(["A", both], states={"A": [0, 1], "B": [0, 1]}).fit({"A": [0, 0, 1, 0], "B": [1, 0, 0, 1]})
    assert mrf.weights_[-1] == -math.inf
    assert mrf.report_.certificate.exists is False
    assert mrf.marginal(("A", "B")).at(A=1, B=1) == 0
    np.testing.assert_allclose(mrf.marginal("A").values, [0.75, 0.25], atol=1e-9)
    np.testing.assert_allclose(mrf.query("B", given={"A": 0}).values, [0.5, 0.5], atol=1e-9)


#: 70 barley mildew isolates by six binary genes (la10, locc, mp58, c365, p53a, a367); Christiansen and Giese 1991.
MILDEW = {
    **{"112111": 3, "122111": 1, "211211": 1, "212211": 1, "111121": 1, "121121": 1, "112121": 7, "212121": 1},
    **{"122121": 4, "221221": 2, "112221": 1, "212221": 3, "222221": 11, "111112": 16, "211112": 1, "121112": 4},
    **{"112112": 1, "111212": 1, "211212": 4, "121212": 1, "221212": 4, "222212": 1},
}
GENES = ["la10", "locc", "mp58", "c365", "p53a", "a367"]


def test_a_sparse_table_counts_fewer_parameters() -> None:
    """R's gRim: the saturated model has 21 parameters left, this one 27 of which 19 are left; -2 log L as printed."""
    domain = sf.Domain([sf.Variable.discrete(gene, ["1", "2"]) for gene in GENES])
    counts = np.zeros((2,) * 6)
    for cell, n in MILDEW.items():
        counts[tuple(int(code) - 1 for code in cell)] = n
    data = sf.Table(domain, counts)
    saturated = sf.MarkovNetwork([GENES]).fit(data)
    assert -2 * saturated.report_.log_likelihood == pytest.approx(365.752700944805, abs=1e-9)
    assert (saturated.n_params_, saturated.adjusted_n_params_, saturated.df_) == (63, 21, 0)
    mrf = sf.MarkovNetwork([("la10", "locc", "mp58", "c365"), ("mp58", "c365", "p53a", "a367")]).fit(data)
    assert mrf.deviance_ == pytest.approx(11.5848001718807, abs=1e-9)
    assert (mrf.n_params_, mrf.df_, mrf.adjusted_n_params_) == (27, 36, 19)
    independent = sf.MarkovNetwork(GENES).fit(data)
    assert (independent.deviance_, independent.chi2_) == pytest.approx((209.720649018484, 404.495914562235), abs=1e-8)
    assert independent.adjusted_df_ == independent.df_ == 57
    assert independent.adjusted_n_params_ == independent.n_params_ == 6


# -- long fits -------------------------------------------------------------------------------------------------------


LONG_SOLVERS = [*TABLE_SOLVERS, "owlqn"]


def long_fit(solver: Any, **options: Any) -> Any:
    prior = sf.Laplace(scale=2.0) if solver == "owlqn" else None
    return sf.MarkovNetwork(CYCLE, solver=solver, prior=prior, **options)


@pytest.mark.parametrize("solver", LONG_SOLVERS)
def test_a_checkpoint_goes_on_to_the_same_bits(solver: Any, tmp_path: Any) -> None:
    path = tmp_path / "fit.suffice"
    with choice.force("numpy"):  # Compiled loops add in another order; which one runs depends on the work so far.
        whole = long_fit(solver).fit(HEART)
        stopped = long_fit(solver, checkpoint=path, callback=lambda state: state.iteration == 2).fit(HEART)
        again = long_fit(solver, checkpoint=path).fit(HEART)
    assert not stopped.converged_
    assert stopped.stop_reason_ == "callback"
    np.testing.assert_array_equal(again.weights_, whole.weights_)
    assert again.history_ == whole.history_
    assert not path.exists()


@pytest.mark.parametrize("solver", LONG_SOLVERS)
def test_ctrl_c_returns_the_best_so_far(solver: Any) -> None:
    def interrupt(state: Any) -> None:
        if state.iteration == 2:
            raise KeyboardInterrupt

    mrf = long_fit(solver, callback=interrupt).fit(HEART)
    assert (mrf.converged_, mrf.stop_reason_) == (False, "interrupted")
    assert mrf.report_.objective == pytest.approx(max(mrf.history_), rel=1e-12)
    assert mrf.report_.objective > mrf.history_[0]


def test_a_start_that_fits_already_stops_at_once() -> None:
    first = sf.MarkovNetwork(CYCLE, solver="newton").fit(HEART)
    for solver in ("ipf", "lbfgs", "newton", "gis"):
        again = sf.MarkovNetwork(CYCLE, solver=solver, start=first.weights_).fit(HEART)
        assert again.n_iter_ <= 1
        assert again.to_joint().allclose(first.to_joint(), rtol=1e-9)
    with pytest.raises(sf.OptionError, match="16 finite weights"):
        sf.MarkovNetwork(CYCLE, start=[0.0]).fit(HEART)


def test_limits_are_not_convergence() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mrf = sf.MarkovNetwork(CYCLE, solver="gis", max_iter=3).fit(HEART)
    assert [w.category for w in caught] == [sf.ConvergenceWarning]
    assert (mrf.converged_, mrf.n_iter_, mrf.stop_reason_) == (False, 3, "max_iter")


# -- lasso where the likelihood is flat beside its prior -------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "state", "scale"),
    [
        ([467.1, 329.8, -24.3, -256.4, 257.6, 406.8], 3, 2208.0),
        ([13.4, -3.0, 1.0, 0.5, 2.0, -1.0], 1, 5872.0),
        ([1.0, -1.0, 0.0, 2.0, 1.5, -3.0], 5, 1e6),
    ],
)
def test_a_weak_lasso_on_a_state_that_was_always_seen_reaches_its_optimum(
    values: Any, state: int, scale: float
) -> None:
    """max f w / 1 - log Z(w) - |w| / (N scale) of one weight, by golden section on the definition."""
    table = np.array(values)
    network = sf.MarkovNetwork([sf.Feature("x", table)], states={"x": range(6)}, prior=sf.Laplace(scale=scale))
    mrf = network.fit({"x": [state, state]})
    assert mrf.converged_

    def loss(weight: float) -> float:
        exponents = weight * (table - table[state])
        return float(np.logaddexp.reduce(exponents) + abs(weight) / (2 * scale))

    sides: Any = [(-50.0, 0.0), (0.0, 50.0)]
    found = [minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-13}).fun for ends in sides]
    best = float(min(found))
    assert mrf.report_.objective / 2 == pytest.approx(-best, abs=1e-11)
    assert mrf.report_.certificate.bound
    assert (mrf.report_.certificate.value_gap or 1.0) < 1e-6
