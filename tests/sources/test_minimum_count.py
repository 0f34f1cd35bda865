"""minimum_count=: joint cells of few rows leave a site in no form: neither as counts nor within a matrix or a slope."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

RARE = r"1 of the \d cells in use of .* have fewer rows than minimum_count=5"


def patients(odd: int) -> pd.DataFrame:
    """200 rows whose columns have states of 40 rows and more; drug b and sex f meet in `odd` rows, each 0 in `flag`."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"drug": ["a"] * 160 + ["b"] * 40, "sex": ["f", "m"] * 80 + ["f"] * odd + ["m"] * (40 - odd)})
    frame["dose"] = rng.normal(size=200)
    frame["cured"] = rng.choice(["no", "yes"], 200)
    frame["visits"] = rng.poisson(9.0, 200) + 60
    return frame


def asked(frame: pd.DataFrame, **options: Any) -> sf.Rounds:
    return sf.Rounds({"north": sf.Site(frame, minimum_count=5, **options)})


REGRESSIONS = [
    ("gaussian", "dose", {"solver": "irls"}),
    ("gaussian", "dose", {"solver": "lbfgs"}),
    ("binomial", "cured", {}),
    ("poisson", "visits", {}),
]


@pytest.mark.parametrize(("family", "y", "options"), REGRESSIONS)
def test_a_curvature_does_not_release_a_joint_cell_of_few_rows(family: Any, y: str, options: dict[str, Any]) -> None:
    model, columns = sf.GLM(family, **options), ["drug", "sex"]
    with pytest.raises(sf.DataError, match=RARE) as caught:
        model.clone().fit(asked(patients(1)), y=y, columns=columns)
    assert "'b'" not in str(caught.value)
    here = model.clone().fit(patients(5), y=y, columns=columns)
    there = model.clone().fit(asked(patients(5)), y=y, columns=columns)
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, rtol=1e-9)


def test_a_slope_does_not_release_a_level_with_a_rare_label() -> None:
    frame = patients(20)
    frame.loc[160:, "cured"] = ["yes"] * 4 + ["no"] * 36
    with pytest.raises(sf.DataError, match=RARE):
        sf.GLM("binomial").fit(asked(frame), y="cured", columns=["drug"])
    frame.loc[164, "cured"] = "yes"
    assert sf.GLM("binomial").fit(asked(frame), y="cured", columns=["drug"]).report_.rows == 200


def test_numbers_that_are_indicators_are_counted_as_states() -> None:
    frame = patients(1)
    frame["b"], frame["f"] = (frame.drug == "b").astype(float), (frame.sex == "f").astype(float)
    with pytest.raises(sf.DataError, match=RARE):
        sf.GLM("gaussian", categorical=[]).fit(asked(frame), y="dose", columns=["b", "f"])
    with pytest.raises(sf.DataError, match=RARE):
        sf.summarize(sf.Moments(("b", "f")), asked(frame))
    frame = patients(5)
    frame["b"], frame["f"] = (frame.drug == "b").astype(float), (frame.sex == "f").astype(float)
    assert sf.GLM("gaussian").fit(asked(frame), y="dose", columns=["b", "f"]).report_.rows == 200


def test_rows_of_weight_0_hide_nobody() -> None:
    frame = patients(20).assign(w=[1.0] * 3 + [0.0] * 197)
    with pytest.raises(sf.DataError, match="fewer rows than minimum_count=5"):
        sf.GLM("gaussian").fit(asked(frame), y="dose", columns=["visits"], sample_weight="w")
    frame["w"] = np.where((frame.drug == "a") | (frame.index < 163), 2.0, 0.0)
    with pytest.raises(sf.DataError, match=r"1 of the 2 cells in use of 'drug'"):
        sf.BayesianNetwork({"drug": []}).fit(asked(frame[["drug", "w"]]), sample_weight="w")


def test_expected_counts_are_judged_by_the_rows_that_are_seen() -> None:
    rng = np.random.default_rng(5)
    frame = patients(1)[["drug", "sex"]].assign(other=rng.choice(["u", "v"], 200))
    frame.loc[::9, "other"] = None
    with pytest.raises(sf.DataError, match=RARE):
        sf.BayesianNetwork([("drug", "sex"), ("drug", "other")], max_iter=3).fit(asked(frame))
    whole = frame.dropna().reset_index(drop=True)
    for network in (
        sf.MarkovNetwork([("drug", "sex"), ("h", "other")], hidden={"h": 2}, max_iter=3),
        sf.MarkovNetwork([("drug", "sex")], solver="pseudolikelihood"),
    ):
        with pytest.raises(sf.DataError, match=RARE):
            network.fit(asked(whole))


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
def test_expected_counts_that_vanish_are_those_of_all_rows() -> None:
    # Fewer distinct rows than minimum_count, and expected counts that go to 0: neither is a cell of few rows.
    frame = pd.DataFrame({"x": ["u"] * 60 + ["v"] * 60, "y": ["p"] * 60 + ["q"] * 60})
    model = sf.BayesianNetwork([("h", "x"), ("h", "y")], hidden={"h": 2}, max_iter=60)
    there, here = model.clone().fit(asked(frame)), model.clone().fit(frame)
    assert there.report_.rows == 120
    np.testing.assert_allclose(there.report_.log_likelihood, here.report_.log_likelihood, rtol=1e-12)
    few = here.query(["h", "x"]).values * 120
    assert ((few > 0) & (few < 5)).any()


def test_pseudo_likelihood_of_many_variables() -> None:
    rng = np.random.default_rng(6)
    names = [f"q{number}" for number in range(14)]
    frame = pd.DataFrame({name: rng.integers(0, 2, 300) for name in names})
    network = sf.MarkovNetwork(list(pairwise(names)), solver="pseudolikelihood", max_iter=3, tolerance=1e-2)
    assert network.clone().fit(asked(frame)).report_.rows == 300
    frame.loc[frame.q4 == 1, "q5"] = 0
    frame.loc[frame.index[frame.q4 == 1][0], "q5"] = 1
    with pytest.raises(sf.DataError, match=RARE):
        network.fit(asked(frame))


# -- sequences ---------------------------------------------------------------------------------------------------------


def steps(rare: str = "") -> pd.DataFrame:
    """30 patients of 10 days; rare: which pair of neighbouring states, or state and symbol, has one row."""
    rng = np.random.default_rng(7)
    states = np.tile(["f"] * 4 + ["g"] * 6, 30)
    if rare == "transition":
        states[3:5] = ["g", "f"]
    symbols = rng.choice(["p", "q"], 300)
    if rare == "symbol":
        symbols[states == "f"] = "p"
        symbols[0] = "q"
    return pd.DataFrame(
        {
            "patient": np.repeat(np.arange(30), 10),
            "day": np.tile(np.arange(10), 30),
            "state": states,
            "symbol": symbols,
            "level": rng.normal(size=300),
        }
    )


KNOWN: dict[str, Any] = {
    "initial": [0.5, 0.5],
    "transitions": [[0.8, 0.2], [0.3, 0.7]],
    "emissions": [[0.7, 0.3], [0.2, 0.8]],
}
SEQUENCES: dict[str, Any] = {
    "unknown states": (
        lambda: sf.HiddenMarkovModel(2, "categorical", max_iter=3, tolerance=1e-1, **KNOWN),
        {"columns": "symbol"},
        (),
    ),
    "known states": (
        lambda: sf.HiddenMarkovModel(["f", "g"], "categorical"),
        {"states": "state", "columns": "symbol"},
        ("transition", "symbol"),
    ),
    "known states of numbers": (
        lambda: sf.HiddenMarkovModel(["f", "g"], "normal"),
        {"states": "state", "columns": "level"},
        ("transition",),
    ),
    "chain": (lambda: sf.MarkovChain(), {"columns": "state"}, ("transition",)),
    "field": (
        lambda: sf.ChainCRF(sf.Normal(variance=1.0), tolerance=1e-2),
        {"y": "state", "columns": ["symbol"]},
        ("transition", "symbol"),
    ),
}


@pytest.mark.filterwarnings("ignore::suffice.ConvergenceWarning")
@pytest.mark.parametrize("order", [None, "day"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_counted_in_pairs(name: str, order: str | None) -> None:
    made, options, refused = SEQUENCES[name]
    model = made().fit(asked(steps()), group="patient", order=order, **options)
    here = made().fit(steps(), group="patient", order=order, **options)
    np.testing.assert_allclose(model.report_.log_likelihood, here.report_.log_likelihood, rtol=1e-9)
    for rare in refused:
        with pytest.raises(sf.DataError, match=r"\d of the \d cells in use of .* have fewer rows than minimum_count=5"):
            made().fit(asked(steps(rare)), group="patient", order=order, **options)


def test_graphs_have_columns_that_are_not_counted() -> None:
    frame = pd.DataFrame({"graph": np.repeat(np.arange(40), 3), "node": np.tile(np.arange(3), 40)})
    frame["near"] = [[] if node == 2 else [node + 1] for node in frame.node]
    frame["level"], frame["label"] = np.arange(120.0), np.tile(["u", "u", "v"], 40)
    options: dict[str, Any] = {"group": "graph", "node": "node", "neighbours": "near", "columns": ["level"]}
    with pytest.raises(sf.DataError, match="columns 'near' hold lists or texts"):
        sf.GraphCRF(sf.Normal(variance=1.0)).fit(asked(frame), y="label", **options)
