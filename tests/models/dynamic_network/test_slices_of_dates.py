"""How long a slice of dates is: learned once, kept with the network, and the same in every later question."""

import datetime

import numpy as np
import pytest

import suffice as sf

DAY = datetime.timedelta(days=1)
WORLD = {("rain", 0): [0.5, 0.5], "rain": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.9, 0.1], [0.2, 0.8]]}


def umbrellas() -> sf.DynamicBayesianNetwork:
    return sf.DynamicBayesianNetwork(
        [(("rain", -1), "rain"), ("rain", "umbrella")],
        hidden={"rain": [True, False]},
        states={"umbrella": [True, False]},
        fixed=WORLD,
    )


def from_day(first: str, steps: list[int]) -> list[str]:
    start = datetime.date.fromisoformat(first)
    return [str(start + step * DAY) for step in steps]


def chain() -> sf.DynamicBayesianNetwork:
    return sf.DynamicBayesianNetwork([(("x", -1), "x")], prior=1.0)


DAILY = {"x": list("aabbabab"), "day": from_day("2024-01-01", list(range(8)))}


def test_a_network_without_a_fit_is_told_how_long_a_slice_is() -> None:
    rows = {"day": ["2024-01-01", "2024-01-07"], "umbrella": [True, True]}
    with pytest.raises(sf.OptionError, match="step="):
        umbrellas().smooth(rows, time="day")
    smoothed = umbrellas().smooth(rows, time="day", step="1 day")["rain"]
    numbered = umbrellas().smooth({"day": [1, 7], "umbrella": [True, True]}, time="day")["rain"]
    assert smoothed.shape == (7, 2)
    assert smoothed == pytest.approx(numbered, abs=1e-15)
    halves = umbrellas().score_samples(rows, time="day", step=datetime.timedelta(days=2))
    assert halves == pytest.approx(umbrellas().score_samples({"umbrella": [True, None, None, True]}), abs=1e-14)


def test_what_is_asked_later_has_the_slices_of_the_fit() -> None:
    net = chain().fit(DAILY, time="day")
    apart = {"x": list("ab"), "day": from_day("2024-02-01", [0, 2])}
    as_numbers = net.score_samples({"x": list("ab"), "day": [0, 2]}, time="day")
    assert net.score_samples(apart, time="day") == pytest.approx(as_numbers, abs=1e-15)
    assert net.score_samples(apart, time="day")[0] != pytest.approx(net.score_samples({"x": list("ab")})[0])
    assert len(net.forecast(apart, time="day")["x"]) == 1
    with pytest.raises(sf.OptionError, match="step= is 2 days, and the network was fitted to slices of 1 day"):
        net.score_samples(apart, time="day", step="2 days")


def test_series_that_join_have_the_slices_of_the_fit() -> None:
    later = {"x": list("babb"), "day": from_day("2024-02-01", [0, 1, 2, 3])}
    other = {"x": list("babb"), "day": from_day("2024-02-01", [0, 2, 4, 6])}
    both = chain().fit([{"x": DAILY["x"]}, {"x": later["x"]}])
    joined = chain().fit(DAILY, time="day").partial_fit(later, time="day")
    assert joined.table("x").values == pytest.approx(both.table("x").values, abs=1e-15)
    with pytest.raises(sf.OptionError, match="neither join nor leave"):
        chain().fit(DAILY, time="day").partial_fit(other, time="day")
    left = joined.unlearn(later, time="day")
    assert left.table("x").values == pytest.approx(chain().fit(DAILY, time="day").table("x").values, abs=1e-15)
    with pytest.raises(sf.OptionError, match="fitted to slices of 1 day"):
        left.partial_fit(other, time="day", step="2 days")


def test_files_and_hidden_nodes_keep_the_length_of_a_slice(tmp_path: object) -> None:
    for net in (chain(), sf.DynamicBayesianNetwork.hmm(2, "x", prior=1.0, max_iter=5, tolerance=1.0)):
        net.fit(DAILY, time="day").write(f"{tmp_path}/net.suffice")
        again = sf.read(f"{tmp_path}/net.suffice")
        apart = {"x": list("ab"), "day": from_day("2024-02-01", [0, 3])}
        assert again.score_samples(apart, time="day") == pytest.approx(
            again.score_samples({"x": list("ab"), "day": [0, 3]}, time="day"), abs=1e-15
        )


def test_months_are_slices_of_their_own() -> None:
    firsts = [f"2024-{month:02d}-01" for month in (1, 2, 3, 4, 6)]
    net = chain().fit({"x": list("abbab"), "day": firsts}, time="day")
    plain = chain().fit({"x": list("abbab"), "day": [1, 2, 3, 4, 6]}, time="day")
    assert any("a slice is 1 month" in note for note in net.report_.warnings)
    assert net.table("x").values == pytest.approx(plain.table("x").values, abs=1e-12)
    ends = [datetime.date(2024, 1, 31), datetime.date(2024, 2, 29), datetime.date(2024, 4, 30)]
    scores = net.score_samples({"x": list("aba"), "day": ends}, time="day")
    assert scores == pytest.approx(plain.score_samples({"x": list("aba"), "day": [1, 2, 4]}, time="day"), abs=1e-12)
    with pytest.raises(sf.DataError, match="no whole number of slices of 1 month"):
        net.score_samples({"x": list("ab"), "day": ["2024-01-01", "2024-02-02"]}, time="day")
    years = [f"{year}-03-01" for year in (2020, 2021, 2023)]
    yearly = chain().fit({"x": list("aba"), "day": years}, time="day")
    assert any("a slice is 1 year" in note for note in yearly.report_.warnings)


def test_summaries_of_parts_say_how_long_a_slice_is() -> None:
    net = chain()
    parts = [
        {"who": [who] * 4, "x": list("abba"), "day": from_day("2024-01-01", [0, 1, 2, 3])} for who in ("ann", "bob")
    ]
    with pytest.raises(sf.OptionError, match="step='1 day'"):
        sf.summarize(net, parts[0], group="who", time="day")
    said = [sf.summarize(net, part, group="who", time="day", step=np.timedelta64(1, "D")) for part in parts]
    whole = chain().fit([{"x": list("abba")}] * 2)
    assert net.fit(said[0] + said[1]).table("x").values == pytest.approx(whole.table("x").values, abs=1e-15)
    numbered = sf.summarize(chain(), {"x": list("abba"), "t": range(4)}, time="t")
    assert numbered[sf.Counts((("x", -1), "x"))].dense().tolist() == [[0.0, 1.0], [1.0, 1.0]]
    with pytest.raises(sf.OptionError, match="time= is for networks through time"):
        sf.summarize(sf.MarkovChain(1), parts[0], group="who", time="day")
    with pytest.raises(sf.OptionError, match="lengths= and columns="):
        sf.summarize(chain(), {"x": list("ab")}, lengths=[2])


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"time": "day", "step": "1 fortnight"}, "expected a timedelta, or a text"),
        ({"time": "day", "step": 0 * DAY}, "takes some time"),
        ({"time": "day", "step": 3}, "expected a timedelta"),
        ({"step": "1 day"}, "Give both"),
        ({"time": "number", "step": "1 day"}, "step= has no effect"),
    ],
)
def test_lengths_that_are_none_are_refused(form: dict[str, object], said: str) -> None:
    with pytest.raises(sf.OptionError, match=said):
        chain().fit({**DAILY, "number": range(8)}, **form)
