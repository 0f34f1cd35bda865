"""EM of networks through time, against hidden Markov models and against tied networks of all slices."""

import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(11)
STEPS: dict[str, Any] = {"tolerance": 1e-300, "max_iter": 6}


def quietly(model: Any, data: Any, **more: Any) -> Any:
    """A fit of few steps, which has not converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data, **more)


def holes(values: Any, share: float, rng: np.random.Generator) -> list[Any]:
    return [None if rng.random() < share else value for value in values]


def test_a_hidden_markov_model_is_a_network_through_time() -> None:
    sequences = [RNG.choice(["a", "b", "c"], length).tolist() for length in (1, 30, 7, 55)]
    first, move = [0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]]
    emit = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]
    emission = sf.Categorical(["a", "b", "c"])
    hmm = sf.HiddenMarkovModel(2, emission, initial=first, transitions=move, emissions=emit, **STEPS)
    quietly(hmm, sequences)
    net = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("h", "y")],
        hidden={"h": 2},
        states={"y": ["a", "b", "c"]},
        start={("h", 0): first, "h": move, "y": emit},
        **STEPS,
    )
    quietly(net, [{"y": sequence} for sequence in sequences])
    assert net.history_ == pytest.approx(hmm.history_, abs=1e-10)
    assert net.table("h").values == pytest.approx(hmm.transitions_, abs=1e-10)
    assert net.table("y").values == pytest.approx(hmm.emission_probabilities_, abs=1e-10)
    assert net.table(("h", 0)).values == pytest.approx(hmm.initial_, abs=1e-10)
    for share in (0.0, 0.2):
        gaps = [holes(sequence, share, RNG) for sequence in sequences]
        assert net.score_samples([{"y": s} for s in gaps]) == pytest.approx(hmm.score_samples(gaps), abs=1e-10)
        for sequence, one in zip(gaps[1:], net.smooth([{"y": s} for s in gaps[1:]]), strict=True):
            assert one["h"] == pytest.approx(hmm.predict_proba([sequence])[0], abs=1e-10)
            assert net.filter({"y": sequence})["h"] == pytest.approx(hmm.filter([sequence])[0], abs=1e-10)


def test_states_may_emit_numbers() -> None:
    sequences = [np.concatenate([RNG.normal(0, 1, 20), RNG.normal(4, 2, 30)]) for _ in range(3)]
    first, move = [0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]]
    hmm = sf.HiddenMarkovModel(
        2,
        sf.Normal(),
        initial=first,
        transitions=move,
        emissions=[sf.Normal(mean=1.0, variance=2.0), sf.Normal(mean=3.0, variance=2.0)],
        **STEPS,
    )
    quietly(hmm, sequences)
    net = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("h", "y")],
        hidden={"h": 2},
        start={("h", 0): first, "h": move, "y": ([[1.0], [3.0]], [2.0, 2.0])},
        **STEPS,
    )
    quietly(net, [{"y": sequence} for sequence in sequences])
    assert net.history_ == pytest.approx(hmm.history_, abs=1e-9)
    assert net.table("h").values == pytest.approx(hmm.transitions_, abs=1e-10)
    assert net.table("y").values[:, 0] == pytest.approx(hmm.means_.ravel(), abs=1e-9)


#: Arcs, hidden nodes, observed nodes with their states.
NETWORKS: dict[str, tuple[list[Any], dict[str, int], dict[str, int]]] = {
    "feedback": ([(("h", -1), "h"), (("y", -1), "h"), ("h", "y"), ("h", "z")], {"h": 2}, {"y": 2, "z": 3}),
    "second order": ([(("h", -1), "h"), (("h", -2), "h"), ("h", "y")], {"h": 2}, {"y": 3}),
    "only gaps": ([(("x", -1), "x"), ("x", "y"), (("y", -1), "y")], {}, {"x": 3, "y": 2}),
    "local": ([(("h", -1), "h"), ("h", "m"), ("m", "y"), ("m", "z")], {"h": 2, "m": 2}, {"y": 2, "z": 2}),
}


def bare(name: Any) -> Any:
    return name[0] if isinstance(name, tuple) else name


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("prior", [None, 1.0])
def test_em_is_that_of_the_tied_network_of_all_slices(name: str, prior: float | None) -> None:
    arcs, hidden, seen = NETWORKS[name]
    rng, length, cards = np.random.default_rng(2), 5, {**hidden, **seen}
    series = [{n: holes(rng.integers(0, c, length).tolist(), 0.2, rng) for n, c in seen.items()} for _ in range(30)]
    states = {node: range(card) for node, card in seen.items()}
    shared: dict[str, Any] = {"prior": prior, "estimate": None if prior is None else "map", **STEPS}
    net = sf.DynamicBayesianNetwork(arcs, hidden=hidden, states=states, **shared)
    start = {
        t: rng.dirichlet(np.ones(cards[bare(t)]), size=tuple(cards[bare(p)] for p in net.parents(t)))
        for t in net.tables_
    }
    quietly(net.set_params(start=start), series)

    parents: dict[Any, list[Any]] = {}
    groups: dict[Any, list[Any]] = {}
    for t in range(length):
        for node in cards:
            family = (node, t) if (node, t) in net.tables_ else node
            above = [
                (bare(p), p[1] if p[1] >= 0 else t + p[1]) if isinstance(p, tuple) else (p, t)
                for p in net.parents(family)
            ]
            parents[node, t] = above
            groups.setdefault(family, []).append((node, t))
    tied = [group for group in groups.values() if len(group) > 1]
    whole = sf.BayesianNetwork(
        parents,
        states={(n, t): range(c) for n, c in seen.items() for t in range(length)},
        hidden={(n, t): c for n, c in hidden.items() for t in range(length)},
        tied=tied,
        start={place: start[family] for family, places in groups.items() for place in places},
        **shared,
    )
    rows = {(n, t): [one[n][t] for one in series] for n in seen for t in range(length)}
    quietly(whole, rows)
    assert net.history_ == pytest.approx(whole.history_, abs=1e-9)
    for family, places in groups.items():
        assert net.table(family).values == pytest.approx(whole.table(places[0]).values, abs=1e-10)


def test_em_ends_where_the_judge_agrees_and_says_what_it_knows() -> None:
    truth = sf.DynamicBayesianNetwork(
        [(("h", -1), "h"), ("h", "y"), (("y", -1), "y")],
        hidden={"h": 2},
        states={"y": range(3)},
        fixed={
            ("h", 0): [0.6, 0.4],
            "h": [[0.9, 0.1], [0.2, 0.8]],
            ("y", 0): [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]],
            "y": [np.full((3, 3), 0.05) + 0.85 * np.eye(3), np.full((3, 3), 0.1) + 0.7 * np.roll(np.eye(3), 1, axis=1)],
        },
    )
    series = [{"y": one["y"]} for one in truth.sample(60, n=40, random_state=1)]
    arcs = [(("h", -1), "h"), ("h", "y"), (("y", -1), "y")]
    net = sf.DynamicBayesianNetwork(arcs, hidden={"h": 2}, prior=1.0, n_init=2, tolerance=1e-8).fit(series)
    assert net.converged_
    assert (np.diff(net.history_) > -1e-9).all()
    assert net.report_.certificate.moment_gap < 1e-3
    assert "interface of slices: 2 joint states of h" in str(net.report_)
    assert len(net.scores_) == 2
    errors = net.standard_errors_["h"].values
    assert ((errors > 0) & (errors < 0.5)).all()
    with pytest.raises(sf.OptionError, match="neither join nor leave"):
        net.partial_fit(series)
    again = sf.DynamicBayesianNetwork(arcs, hidden={"h": 2}, prior=1.0, start=net, tolerance=1e-6).fit(series)
    assert again.n_iter_ <= 2


def test_files_keep_what_em_has_found(tmp_path: Any) -> None:
    series = [{"y": RNG.integers(0, 2, 12).tolist()} for _ in range(5)]
    net = sf.DynamicBayesianNetwork([(("h", -1), "h"), ("h", "y")], hidden={"h": 2}, prior=1.0, max_iter=3)
    quietly(net, series)
    net.write(tmp_path / "net.suffice")
    again = sf.read(tmp_path / "net.suffice")
    assert again.table("h").values == pytest.approx(net.table("h").values, abs=0)
    assert again.report_ == net.report_
    assert again.score(series) == net.score(series)


def test_what_every_slice_shows_is_counted_as_it_is() -> None:
    rng = np.random.default_rng(4)
    series = [{"x": rng.integers(0, 2, 20).tolist(), "y": holes(rng.integers(0, 2, 20), 0.3, rng)} for _ in range(4)]
    arcs = [(("x", -1), "x"), ("x", "y")]
    net = sf.DynamicBayesianNetwork(arcs, tolerance=1e-12).fit(series)
    full = sf.DynamicBayesianNetwork([(("x", -1), "x")]).fit([{"x": one["x"]} for one in series])
    assert net.table("x").values == pytest.approx(full.table("x").values, abs=1e-14)
    # A leaf that is missing says nothing: its table is that of the slices that show it.
    pairs = [(x, y) for one in series for x, y in zip(one["x"], one["y"], strict=True) if y is not None]
    share = sum(x == 1 and y == 1 for x, y in pairs) / sum(x == 1 for x, _ in pairs)
    assert net.table("y").at({"x": 1, "y": 1}) == pytest.approx(share, abs=1e-9)
    with pytest.raises(sf.MissingValueError, match="slice"):
        sf.DynamicBayesianNetwork(arcs, missing="raise").fit(series)


def test_numbers_that_are_missing_inside_are_refused_beside_hidden_states() -> None:
    series = {"x": [0.5, 1.0, None, 2.0]}
    arcs = [("h", "x"), (("x", -1), "x"), (("h", -1), "h")]
    with pytest.raises(sf.OptionError, match="holds numbers"):
        sf.DynamicBayesianNetwork(arcs, hidden={"h": 2}).fit(series)


def test_numbers_may_depend_on_several_hidden_chains() -> None:
    rng, length = np.random.default_rng(6), 4
    arcs = [("b", "y"), ("a", "y"), (("a", -1), "a"), (("b", -1), "b"), (("y", -1), "y")]
    series = [{"y": rng.normal(size=length)} for _ in range(20)]
    start = {
        ("a", 0): [0.3, 0.7],
        ("b", 0): [0.2, 0.5, 0.3],
        "a": [[0.8, 0.2], [0.4, 0.6]],
        "b": rng.dirichlet(np.ones(3), size=3),
        ("y", 0): (rng.normal(size=(3, 2, 1)), rng.uniform(0.5, 2.0, size=(3, 2))),
        "y": (rng.normal(size=(3, 2, 2)), rng.uniform(0.5, 2.0, size=(3, 2))),
    }
    hidden = {"a": 2, "b": 3}
    given = sf.DynamicBayesianNetwork(arcs, hidden=hidden, states={"y": "real"}, fixed=start)
    whole = given.unroll(length)
    rows = {("y", t): [one["y"][t] for one in series] for t in range(length)}
    assert given.score_samples(series) == pytest.approx(whole.score_samples(rows), abs=1e-9)
    one_step: dict[str, Any] = {"tolerance": 1e-300, "max_iter": 1, "variance_floor": 1e-9}
    net = sf.DynamicBayesianNetwork(arcs, hidden=hidden, states={"y": "real"}, start=start, **one_step)
    quietly(net, series)
    tied = sf.BayesianNetwork(
        {place: list(above) for place, above in ((p, whole.parents(p)) for p in whole.nodes)},
        hidden={(n, t): card for n, card in hidden.items() for t in range(length)},
        states={("y", t): "real" for t in range(length)},
        tied=[[(n, t) for t in range(1, length)] for n in ("a", "b", "y")],
        start=whole,
        **one_step,
    )
    quietly(tied, rows)
    for name in ("a", "b", "y"):
        assert net.table(name).values == pytest.approx(tied.table((name, 1)).values, abs=1e-8)
    assert net.table(("y", 0)).values == pytest.approx(tied.table(("y", 0)).values, abs=1e-8)


def test_numbers_that_sensors_fail_to_show_do_not_unsettle_the_judge() -> None:
    """The judge's own step leaves out of a regression what it does not see, as the steps of EM do."""
    rng = np.random.default_rng(3)
    many = []
    for _ in range(6):
        states = np.cumsum(rng.random(60) < 0.05) % 2
        heat = 3.0 * states + rng.normal(size=60)
        heat[rng.random(60) < 0.2] = np.nan
        many.append({"heat": heat, "alarm": (rng.random(60) < 0.1 + 0.5 * states).tolist()})
    net = sf.DynamicBayesianNetwork.hmm(2, ["heat", "alarm"], tolerance=1e-6, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sf.ConvergenceWarning)
        net.fit(many)
    assert net.converged_
