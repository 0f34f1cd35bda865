"""Sites that share no rows: fits equal those of all rows, nothing but sums is released, errors name the site."""

import os
import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.engines.space import Space
from suffice.models.conditional_field.shards import PartOfVector
from suffice.models.em.held_rows import KeepRows
from suffice.sources.base import Batch
from suffice.sources.partitions import Reading

RNG = np.random.default_rng(3)
ROWS = 600


def regression_rows() -> pd.DataFrame:
    frame = pd.DataFrame({"group": RNG.choice(list("abc"), ROWS), "dose": RNG.normal(size=ROWS)})
    rate = np.exp(0.3 + 0.5 * frame.dose + (frame.group == "b"))
    return frame.assign(
        cured=(RNG.random(ROWS) < rate / (1 + rate)).astype(int),
        visits=np.minimum(RNG.poisson(rate), 4),
        score=frame.dose * 2 + RNG.normal(size=ROWS),
    )


def rows_with_missing_values() -> pd.DataFrame:
    frame = pd.DataFrame({"a": RNG.choice(list("xyz"), ROWS)})
    frame["b"] = np.where(RNG.random(ROWS) < 0.7, frame.a, "x")
    frame["c"] = np.where(RNG.random(ROWS) < 0.6, frame.b, "z")
    return frame.mask(RNG.random(frame.shape) < 0.1)


REGRESSION, MISSING = regression_rows(), rows_with_missing_values()
STEPS = pd.DataFrame(
    {
        "patient": np.repeat(np.arange(ROWS // 12), 12),
        "symbol": RNG.choice(list("pqr"), ROWS),
        "level": RNG.normal(size=ROWS) + np.repeat(RNG.integers(0, 2, ROWS // 6), 6) * 4,
    }
)


def sites(frame: pd.DataFrame, count: int, **options: Any) -> sf.Rounds:
    """The rows in parts, of whole patients."""
    bounds = [0, *(12 * (ROWS * (part + 1) // (12 * count) + 3 * (part + 1 < count)) for part in range(count))]
    parts = [frame[start:end].reset_index(drop=True) for start, end in pairwise(bounds)]
    assert sum(map(len, parts)) == len(frame)
    return sf.Rounds([sf.Site(part, name=f"site-{number}", **options) for number, part in enumerate(parts)])


def numbers_of(value: object) -> list[float]:
    """All numbers of a record, in order."""
    if is_dataclass(value):
        return [number for field in fields(value) for number in numbers_of(getattr(value, field.name))]
    return [float(value)] if isinstance(value, int | float) else []


def assert_same_certificate(mine: sf.Certificate, other: sf.Certificate) -> None:
    assert mine.exists == other.exists
    assert mine.exact == other.exact
    np.testing.assert_allclose(numbers_of(mine), numbers_of(other), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("family", "y", "options"),
    [
        ("binomial", "cured", {}),
        ("poisson", "visits", {"solver": "lbfgs"}),
        ("gaussian", "score", {}),
        ("ordinal", "visits", {}),
        ("binomial", "cured", {"prior": sf.Normal(variance=2.0)}),
    ],
)
def test_a_regression_equals_that_of_all_rows(count: int, family: Any, y: Any, options: dict[str, Any]) -> None:
    columns = ["group", "dose"]
    here = sf.GLM(family, **options).fit(REGRESSION, y=y, columns=columns)
    there = sf.GLM(family, **options).fit(sites(REGRESSION, count), y=y, columns=columns)
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(there.standard_errors_, here.standard_errors_, rtol=1e-8)
    assert there.report_.certificate.exists is here.report_.certificate.exists
    assert there.report_.certificate.moment_gap < 1e-6


@pytest.mark.parametrize("count", [2, 3])
def test_em_of_missing_values_equals_that_of_all_rows(count: int) -> None:
    model = sf.BayesianNetwork([("a", "b"), ("b", "c")])
    here, there = model.clone().fit(MISSING), model.clone().fit(sites(MISSING, count))
    assert there.report_.iterations == here.report_.iterations
    for node in "abc":
        np.testing.assert_allclose(there.query([node]).values, here.query([node]).values, rtol=1e-10)
    assert_same_certificate(there.report_.certificate, here.report_.certificate)


def test_a_hidden_node_equals_that_of_all_rows() -> None:
    model = sf.BayesianNetwork(
        {"h": [], "a": ["h"], "b": ["h"], "c": ["h"]}, hidden={"h": 2}, tolerance=1e-3, random_state=1
    )
    whole = MISSING.dropna().reset_index(drop=True)
    here = model.clone().fit(whole)
    half = len(whole) // 2
    there = model.clone().fit(
        sf.Rounds({"n": sf.Site(whole[:half]), "s": sf.Site(whole[half:].reset_index(drop=True))})
    )
    assert there.report_.iterations == here.report_.iterations
    np.testing.assert_allclose(there.query(["a", "b"]).values, here.query(["a", "b"]).values, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(
    ("emission", "column", "starts"),
    [
        ("categorical", "symbol", [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
        ("normal", "level", [sf.Normal(mean=0.0, variance=1.0), sf.Normal(mean=3.0, variance=2.0)]),
    ],
)
def test_baum_welch_equals_that_of_all_rows(count: int, emission: str, column: str, starts: list[Any]) -> None:
    start: dict[str, Any] = {"initial": [0.6, 0.4], "transitions": [[0.7, 0.3], [0.2, 0.8]], "emissions": starts}
    model = sf.HiddenMarkovModel(2, emission, **start, max_iter=8)
    here = model.clone().fit(STEPS, group="patient", columns=column)
    there = model.clone().fit(sites(STEPS, count), group="patient", columns=column)
    assert there.report_.iterations == here.report_.iterations
    np.testing.assert_allclose(there.transitions_, here.transitions_, rtol=1e-10)
    np.testing.assert_allclose(there.report_.log_likelihood, here.report_.log_likelihood, rtol=1e-12)
    mine, other = there.report_.certificate.slope, here.report_.certificate.slope
    assert mine is not None
    assert other is not None
    np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-10)


def test_markov_networks_and_fields_equal_those_of_all_rows() -> None:
    network = sf.MarkovNetwork([("a", "b"), ("b", "c")])
    here, there = network.clone().fit(MISSING), network.clone().fit(sites(MISSING, 2))
    assert there.report_.iterations == here.report_.iterations
    np.testing.assert_allclose(there.query(["a", "b"]).values, here.query(["a", "b"]).values, rtol=1e-10)
    field = sf.ChainCRF(prior=sf.Normal(variance=1.0), max_iter=200)
    table = STEPS.assign(label=np.where(STEPS.level > 2, "ill", "well"))[["patient", "symbol", "label"]]
    near = field.clone().fit(table, "label", group="patient")
    far = field.clone().fit(sites(table, 2), "label", group="patient")
    np.testing.assert_allclose(far.report_.log_likelihood, near.report_.log_likelihood, rtol=1e-10)


def test_states_of_one_site_alone_are_states_of_the_fit() -> None:
    north, south = pd.DataFrame({"x": list("aab")}), pd.DataFrame({"x": list("ccb")})
    model = sf.BayesianNetwork({"x": []}).fit(sf.Rounds([sf.Site(north), sf.Site(south)]))
    assert {state: model.query(["x"]).at(x=state) for state in "abc"} == pytest.approx(
        {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
    )


def test_weights_are_named() -> None:
    weighted = REGRESSION.assign(times=RNG.integers(1, 4, ROWS))
    options: dict[str, Any] = {"y": "cured", "columns": ["dose"], "sample_weight": "times"}
    here = sf.GLM("binomial").fit(weighted, **options)
    there = sf.GLM("binomial").fit(sites(weighted, 2), **options)
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-10)
    with pytest.raises(sf.OptionError, match="name"):
        sf.BayesianNetwork({"group": []}).fit(sites(weighted, 2), sample_weight=np.ones(ROWS))


# -- what travels ------------------------------------------------------------------------------------------------------


def test_what_is_released_does_not_grow_with_the_rows() -> None:
    sizes = []
    for repeats in (1, 8):
        many = pd.concat([MISSING] * repeats, ignore_index=True)
        one, released = sf.Site(many), list[int]()

        def asked(question: sf.Question, site: sf.Site = one, released: list[int] = released) -> Any:
            answer = pickle.loads(pickle.dumps(site.answer(pickle.loads(pickle.dumps(question)))))
            released.append(len(pickle.dumps(answer)))
            return answer

        sf.BayesianNetwork([("a", "b"), ("b", "c")], max_iter=3, tolerance=1e-3).fit(sf.Rounds({"all": asked}))
        sizes.append(max(released))
    assert sizes[1] <= sizes[0] + 64


def test_rows_are_not_released() -> None:
    with pytest.raises(sf.DataError, match=r"holds rows.*site 'site-0'"):
        sf.summarize(sf.Patterns(("a", "b")), sites(MISSING, 2))
    free = sites(STEPS, 2, allow_rows=True)
    model = sf.HiddenMarkovModel(2, "categorical", tolerance=1e-2).fit(free, group="patient", columns="symbol")
    assert model.report_.rows == ROWS
    with pytest.raises(sf.OptionError, match="stay at their sites"):
        sf.GLM("binomial").fit(REGRESSION, y="cured", columns=["dose"]).predict(sites(REGRESSION, 2))


def double(batch: Batch) -> int:
    """A question of someone else's."""
    return batch.rows * 2


def test_questions_of_others_are_refused() -> None:
    site = sf.Site(MISSING)
    with pytest.raises(sf.OptionError, match=r"double; a site answers questions of suffice alone"):
        site.answer(sf.Question(None, None, double))
    with pytest.raises(sf.OptionError, match=r"posix\.system|nt\.system"):
        site.answer(sf.Question(None, None, os.system, "true"))
    with pytest.raises(sf.OptionError, match="asked str"):
        site.answer("rows, please")  # type: ignore[arg-type]


# -- the least count ---------------------------------------------------------------------------------------------------


def test_rare_cells_are_not_released() -> None:
    frame = pd.DataFrame({"a": ["x"] * 50 + ["y"] * 50, "b": ["u"] * 50 + ["v"] * 48 + ["u"] * 2})
    network = sf.BayesianNetwork([("a", "b")])
    assert network.fit(sf.Rounds([sf.Site(frame, minimum_count=2)])).report_.rows == 100
    with pytest.raises(sf.DataError, match=r"1 of the 3 cells in use of .*minimum_count=3") as caught:
        network.fit(sf.Rounds({"north": sf.Site(frame, minimum_count=3)}))
    assert "'north'" in str(caught.value)
    assert "'u'" not in str(caught.value)


def test_weights_do_not_make_rare_cells_common() -> None:
    frame = pd.DataFrame({"a": ["x"] * 50 + ["y"] * 2, "w": [1.0] * 50 + [1000.0] * 2})
    site = sf.Site(frame, minimum_count=3)
    with pytest.raises(sf.DataError, match="minimum_count=3"):
        sf.BayesianNetwork({"a": []}).fit(sf.Rounds([site]), sample_weight="w")


@pytest.mark.parametrize("rare", ["state", "missing"])
def test_rare_states_are_not_released_in_rounds(rare: str) -> None:
    frame = MISSING.dropna().reset_index(drop=True)
    frame.loc[:39, "a"] = None
    frame.loc[40:41, "b"] = "odd" if rare == "state" else None
    rounds = sf.Rounds([sf.Site(frame, minimum_count=5)])
    with pytest.raises(sf.DataError, match=r"1 of the \d cells in use of 'b' have fewer rows than minimum_count=5"):
        sf.BayesianNetwork([("a", "b")]).fit(rounds)


def test_rare_whole_numbers_are_not_released_although_they_were_looked_at_as_numbers() -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0] * 50, "b": [1.0, 0.0, 0.0, 1.0] * 25})
    frame.loc[:9, "a"], frame.loc[20:29, "b"], frame.loc[40, "a"] = None, None, 7.0
    with pytest.raises(sf.DataError, match=r"1 of the 3 cells in use of 'a' have fewer rows than minimum_count=5"):
        sf.BayesianNetwork([("a", "b")]).fit(sf.Rounds([sf.Site(frame, minimum_count=5)]))


def test_rare_categories_are_not_told_with_the_columns() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x"] * 50 + ["rare"]), "b": pd.Categorical(["u", "v", "u"] * 17)})
    told = sf.Site(frame, minimum_count=5).answer(sf.Question()).variables
    assert told["a"].states == ()
    assert told["b"].states == ("u", "v")
    assert sf.Site(frame).answer(sf.Question()).variables["a"].states == ("rare", "x")
    with pytest.raises(sf.DataError, match=r"1 of the 2 cells in use of 'a'"):
        sf.BayesianNetwork([("a", "b")]).fit(sf.Rounds([sf.Site(frame, minimum_count=5)]))


def test_a_record_made_of_rows_is_not_released() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 50})
    domain = Domain([Variable("a", "discrete", ("x", "y"))])
    reading, work = Reading(domain, settled=True), KeepRows(("a",), domain)
    for question in (
        sf.Question(Reading(domain), None, Space),
        sf.Question(reading, work, PartOfVector),
        sf.Question(reading, work, None, (PartOfVector, None)),
    ):
        with pytest.raises(sf.OptionError, match="holds the class"):
            sf.Site(frame).answer(question)


def test_few_rows_are_not_released_as_sums() -> None:
    small = REGRESSION[:8]
    options: dict[str, Any] = {"y": "score", "columns": ["dose"]}
    assert sf.GLM("gaussian").fit(sf.Rounds([sf.Site(small, minimum_count=8)]), **options).coefficients_.shape == (1,)
    with pytest.raises(sf.DataError, match="fewer rows than minimum_count=9"):
        sf.GLM("gaussian").fit(sf.Rounds([sf.Site(small, minimum_count=9)]), **options)


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_an_error_names_the_site() -> None:
    bad = REGRESSION.copy()
    bad.loc[590, "dose"] = np.nan
    with pytest.raises(sf.MissingValueError, match=r"'dose'.*site 'site-2'"):
        sf.GLM("binomial").fit(sites(bad, 3), y="cured", columns=["dose"])

    def broken(question: sf.Question) -> Any:
        raise ConnectionError("no answer")

    asked: dict[str, Callable[[sf.Question], Any]] = {"north": sf.Site(bad), "south": broken}
    with pytest.raises(ConnectionError) as caught:
        sf.GLM("binomial").fit(sf.Rounds(asked), y="cured", columns=["dose"])
    assert "south" in caught.value.__notes__[0]


def test_sites_must_have_the_same_columns() -> None:
    with pytest.raises(sf.DataError, match=r"do not both have 'w'.*columns="):
        sf.Rounds([sf.Site({"x": ["a"]}), sf.Site({"x": ["a"], "w": [1]})]).columns  # noqa: B018
    assert sf.Rounds([sf.Site({"x": ["a"]}), sf.Site({"x": ["a"], "w": [1]}, columns=["x"])]).columns == ["x"]


def test_sites_are_sites() -> None:
    with pytest.raises(sf.OptionError, match="no sites"):
        sf.Rounds([])
    with pytest.raises(sf.OptionError, match=r"DataFrame; expected sf\.Site"):
        sf.Rounds([MISSING])
    with pytest.raises(sf.OptionError, match="names of their own"):
        sf.Rounds([sf.Site(MISSING, name="a"), sf.Site(MISSING, name="a")])
    with pytest.raises(sf.OptionError, match="not both"):
        sf.Site(MISSING, minimum_count=3, allow_rows=True)
    with pytest.raises(sf.OptionError, match="minimum_count"):
        sf.Site(MISSING, minimum_count=0)
    with pytest.raises(sf.DataError, match="only once"):
        sf.Site(iter([MISSING]))


def test_columns_that_are_read_as_they_stand_are_not_released_with_a_minimum() -> None:
    tokens = pd.DataFrame({"doc": np.repeat(np.arange(40), 5), "tag": ["N", "V"] * 100})
    tokens["features"] = [[f"w{row % 3}"] for row in range(199)] + [["Smith"]]
    sites = sf.Rounds([sf.Site(tokens, minimum_count=5)])
    with pytest.raises(sf.DataError, match=r"'features' hold lists or texts.*minimum_count=5: nothing is released"):
        sf.ChainCRF(sf.Normal(0, 1)).fit(sites, y="tag", group="doc", features="features")


def test_rare_windows_of_a_chain_are_not_released() -> None:
    rng = np.random.default_rng(101)
    steps = pd.DataFrame({"doc": [0] * 199 + [1], "state": rng.choice(["a", "b"], 200)})
    with pytest.raises(sf.SufficeError, match="minimum_count="):
        sf.MarkovChain(3).fit(sf.Rounds([sf.Site(steps, minimum_count=20)]), group="doc")
    sf.MarkovChain(1).fit(sf.Rounds([sf.Site(steps)]), group="doc")


@pytest.mark.parametrize(
    "made",
    [
        lambda: sf.HiddenMarkovModel(2, "categorical"),
        sf.MarkovChain,
        lambda: sf.HiddenMarkovModel(["a", "b"], "categorical"),
    ],
)
def test_sequences_without_a_group_are_refused_by_name(made: Callable[[], Any]) -> None:
    for options in ({}, {"lengths": [300, 300]}):
        with pytest.raises(sf.OptionError, match=r"stay at the sites of sf\.Rounds.*group="):
            made().fit(sites(STEPS, 2), columns="symbol", **options)


def test_functions_that_are_no_sites_are_named() -> None:
    model, options = sf.GLM("binomial"), {"y": "cured", "columns": ["dose"]}
    with pytest.raises(sf.DataError, match=r"Site 'north' was asked what its columns are and answered with NoneType"):
        model.fit(sf.Rounds({"north": lambda question: None}), **options)
    own = sf.Site(REGRESSION)
    rest: dict[str, Any] = {"north": lambda question: own(question) if question.reading is None else "yes"}
    for others in ({}, {"south": own}):
        with pytest.raises(sf.DataError, match=r"do not add up \('north': str"):
            model.fit(sf.Rounds({**rest, **others}), **options)


def test_a_refusal_says_what_asks_for_no_rows() -> None:
    rng = np.random.default_rng(9)
    many = pd.DataFrame({f"q{number}": rng.integers(0, 2, 60) for number in range(14)})
    edges = list(pairwise(many.columns))
    rounds = sf.Rounds([sf.Site(many)])
    for more in ({"solver": "cd"}, {"solver": "sml", "batch_size": 10}):
        with pytest.raises(sf.DataError, match=r"begin at rows: use solver='sml' without batch_size=") as caught:
            sf.MarkovNetwork(edges, max_iter=3, **more).fit(rounds)
        assert "initial=" not in str(caught.value)
    steps = STEPS.assign(known=["a" if row % 3 == 0 else None for row in range(ROWS)])
    model = sf.HiddenMarkovModel(["a", "b"], "normal")
    with pytest.raises(sf.DataError, match=r"initial=, transitions= and emissions=") as caught:
        model.fit(sites(steps, 2), group="patient", columns="level", states="known")
    assert "solver=" not in str(caught.value)


def test_text_at_one_site_and_numbers_at_another_are_refused() -> None:
    frame = pd.DataFrame({"k": RNG.integers(0, 2, 60), "v": RNG.choice(["a", "b"], 60), "y": RNG.normal(size=60)})
    whole, text = sf.Site(frame, name="whole"), sf.Site(frame.assign(k=frame.k.astype(str)), name="text")
    for rounds in (sf.Rounds([whole, text]), sf.Rounds([text, whole])):
        for fit in (
            lambda rows: sf.BayesianNetwork([("k", "v")]).fit(rows),
            lambda rows: sf.BayesianNetwork([("h", "k")], hidden={"h": 2}).fit(rows),
            lambda rows: sf.GLM("gaussian").fit(rows, y="y", columns=["k"]),
            lambda rows: sf.MarkovChain().fit(rows, columns="k", group="v"),
        ):
            with pytest.raises(sf.DataError, match=r"'k' holds .* at site '\w+' and .* at site '\w+', whose"):
                fit(rounds)


def test_integers_at_one_site_and_floats_at_another_are_told() -> None:
    frame = pd.DataFrame({"k": RNG.integers(0, 2, 60), "v": RNG.choice(["a", "b"], 60)})
    rounds = sf.Rounds({"n": sf.Site(frame), "s": sf.Site(frame.assign(k=frame.k + 0.25 * RNG.random(60)))})
    report = str(sf.BayesianNetwork([("v", "k")]).fit(rounds).report_)
    assert "'k' holds integers at site 'n' and floats at site 's': all are read as numbers" in report


# -- starts, formulas, targets -----------------------------------------------------------------------------------------


class Recorded:
    """A site that keeps what it was asked and what it answered."""

    def __init__(self, frame: pd.DataFrame, **options: Any) -> None:
        self.site, self.answers = sf.Site(frame.reset_index(drop=True), **options), list[Any]()

    def __call__(self, question: sf.Question) -> Any:
        self.answers.append(self.site.answer(question))
        return self.answers[-1]


def parts(frame: pd.DataFrame, **options: Any) -> list[Recorded]:
    return [Recorded(frame[:240], **options), Recorded(frame[240:], **options)]


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize(("emission", "column"), [("normal", "level"), ("categorical", "symbol"), ("poisson", "count")])
def test_em_begins_by_sums_over_all_steps(emission: str, column: str) -> None:
    steps = STEPS.assign(count=np.where(STEPS.level > 2, 9, 1) + STEPS.index % 2)
    model = sf.HiddenMarkovModel(2, emission, tolerance=1e-4, random_state=4)
    recorded = parts(steps, minimum_count=20)
    there = model.clone().fit(sf.Rounds({"n": recorded[0], "s": recorded[1]}), group="patient", columns=column)
    here = model.clone().fit(steps, group="patient", columns=column)
    assert there.report_.log_likelihood == pytest.approx(here.report_.log_likelihood, rel=1e-3)
    if emission != "categorical":  # Both find the two levels that the steps were drawn from.
        np.testing.assert_allclose(np.sort(np.diag(there.transitions_)), np.sort(np.diag(here.transitions_)), atol=0.02)
    whole = sf.Rounds([sf.Site(steps, name="all")])
    np.testing.assert_allclose(
        model.clone().fit(whole, group="patient", columns=column).report_.log_likelihood,
        there.report_.log_likelihood,
        rtol=1e-9,
    )


@pytest.mark.parametrize(
    ("family", "formula"),
    [
        ("binomial", "cured ~ dose * C(group)"),
        ("poisson", "visits ~ np.exp(dose / 4) + group"),
        ("gaussian", "np.log(visits + 1) ~ scale(dose) + group"),
    ],
)
def test_formulas_are_evaluated_at_the_sites(family: Any, formula: str) -> None:
    model = sf.GLM(family, formula=formula)
    here = model.clone().fit(REGRESSION)
    recorded = parts(REGRESSION)
    there = model.clone().fit(sf.Rounds({"n": recorded[0], "s": recorded[1]}))
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(there.standard_errors_, here.standard_errors_, rtol=1e-7)
    np.testing.assert_allclose(there.predict(REGRESSION), here.predict(REGRESSION), rtol=1e-8)


def test_terms_of_a_formula_are_counted_in_pairs() -> None:
    frame = REGRESSION.assign(other=np.where(np.arange(ROWS) % 2 == 0, "u", "v"))
    frame.loc[frame.group == "b", "other"] = "u"
    fine = sf.Rounds([sf.Site(frame, minimum_count=5)])
    assert sf.GLM("gaussian", formula="score ~ dose + group").fit(fine).report_.rows == ROWS
    frame.loc[frame.index[frame.group == "b"][0], "other"] = "v"
    for formula in ("score ~ group + other", "score ~ group:dose + other:dose", "cured ~ group + dose:other"):
        with pytest.raises(
            sf.DataError, match=r"1 of the \d+ cells in use of 'group', 'other'|cells in use of .*other"
        ):
            sf.GLM("gaussian", formula=formula).fit(sf.Rounds([sf.Site(frame, minimum_count=5)]))


def test_a_question_runs_no_expression_of_its_own(tmp_path: Any) -> None:
    formulaic = pytest.importorskip("formulaic")
    assert formulaic
    from suffice.models.glm.formula_rows import FormulaSurvey
    from suffice.sources.base import Layout

    target = tmp_path / "made"
    for factor in (f"{{open({str(target)!r}, 'w')}}", f"{{dose}} + {{open({str(target)!r}, 'w')}}", "`dose` + `group`"):
        reading = Reading(Domain(), layout=Layout(raw=("dose",)), settled=True)
        with pytest.raises(sf.OptionError, match="no column and no expression of known functions"):
            sf.Site(REGRESSION).answer(sf.Question(reading, FormulaSurvey((factor,), ("dose",))))
    assert not target.exists()


def test_tables_for_a_target_are_learned_from_counts() -> None:
    whole = MISSING.dropna().reset_index(drop=True)
    model = sf.BayesianNetwork([("a", "b"), ("b", "c"), ("a", "c")], target="b", objective="conditional", prior=1.0)
    here = model.clone().fit(whole)
    there = model.clone().fit(sf.Rounds([sf.Site(whole[:200]), sf.Site(whole[200:].reset_index(drop=True))]))
    for node in "abc":
        np.testing.assert_allclose(there.table(node).values, here.table(node).values, rtol=1e-7, atol=1e-9)
    assert_same_certificate(there.report_.certificate, here.report_.certificate)
    with pytest.raises(sf.DataError, match=r"cells in use of 'b', 'a', 'c' have fewer rows than minimum_count=\d+"):
        model.clone().fit(sf.Rounds([sf.Site(whole, minimum_count=20)]))


def test_nodes_that_are_regressions_release_no_rows() -> None:
    frame = REGRESSION[["group", "dose", "cured"]]
    model = sf.BayesianNetwork([("dose", "cured"), ("group", "cured")], nodes={"cured": sf.GLM("binomial")})
    recorded = parts(frame)
    there = model.clone().fit(sf.Rounds({"n": recorded[0], "s": recorded[1]}))
    here = model.clone().fit(frame)
    np.testing.assert_allclose(there.node("cured").coefficients_, here.node("cured").coefficients_, rtol=1e-9)
    assert max(len(pickle.dumps(answer)) for one in recorded for answer in one.answers) < 3_000
