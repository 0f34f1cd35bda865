"""The certificate of a chain is measured on the law that is returned, and says what was maximised, if anything was."""

import itertools
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.models.markov_chain import hyper, rows
from suffice.models.markov_chain import solve as solving

TEXTS = ["abbac", "cabab", "acb", "bbca", "ca", "abcabc"]


def rows_of(texts: Any, order: int) -> dict[tuple[str, ...], Counter[str]]:
    """Counts after every history, those of the first steps among them."""
    rows: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for text in texts:
        for at, word in enumerate(text):
            rows[tuple(text[max(at - order, 0) : at]) if at < order else tuple(text[at - order : at])][word] += 1
    return rows


def loss(chain: Any, texts: Any, order: int, added: float) -> float:
    """What the rows of a chain lose to ``(n + added) / (N + added * 3)``, in nats per step."""
    lost, steps = 0.0, 0
    for history, counts in rows_of(texts, order).items():
        row = chain.row(["<s>", *history] if len(history) < order else history).values
        m = np.array([counts[state] + added for state in chain.states_])
        used = m > 0
        lost += float((m[used] * (np.log(m[used] / m.sum()) - np.log(row[used]))).sum())
        steps += sum(counts.values())
    return lost / steps


def softened(law: Any, share: float = 0.4) -> Any:
    """A law whose rows are mixed with something else, so that they still add up to one."""
    if hasattr(law, "log_table"):
        return replace(law, log_table=np.log((1 - share) * np.exp(law.log_table) + share / law.card))
    mixed = []
    for n, level in enumerate(law.levels.levels):
        p = np.exp(law.log_p[n])
        if n > 0:
            size = len(law.levels.levels[n - 1])
            used = p > 0
            mass = np.bincount(level.history, p * used, minlength=size)
            kinds = np.bincount(level.history, used, minlength=size)
            p = np.where(used, (1 - share) * p + share * mass[level.history] / np.maximum(kinds[level.history], 1), p)
        with np.errstate(divide="ignore"):
            mixed.append(np.log(p))
    return replace(law, log_p=tuple(mixed))


CASES: list[tuple[dict[str, Any], str, float]] = [
    ({}, "maximum_likelihood_distribution", 0.0),
    ({"prior": 0.5}, "dirichlet_distribution", 0.5),
    ({"prior": 3.0, "estimate": "map"}, "dirichlet_distribution", 2.0),
]


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("options", "made_by", "added"), CASES, ids=["mle", "mean", "map"])
def test_a_law_that_was_tampered_with_is_seen(
    options: dict[str, Any], made_by: str, added: float, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = sf.MarkovChain(order, **options).fit(TEXTS)
    certificate = good.report_.certificate
    assert certificate.bound
    assert certificate.value_gap is not None
    assert 0.0 <= certificate.value_gap < 1e-13
    assert loss(good, TEXTS, order, added) <= certificate.value_gap
    assert certificate.moment_gap < 1e-12
    right = getattr(solving, made_by)
    monkeypatch.setattr(solving, made_by, lambda *a, **k: softened(right(*a, **k)))
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        bad = sf.MarkovChain(order, **options).fit(TEXTS)
    lost = loss(bad, TEXTS, order, added)
    assert lost > 1e-3
    assert bad.report_.certificate.value_gap == pytest.approx(lost, rel=1e-9)
    assert bad.report_.certificate.moment_gap > 0.01


def test_a_table_of_priors_is_measured_too(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = np.array([[1.5, 2.0, 3.0], [1.0, 1.0, 1.0], [4.0, 0.5, 2.0]])
    good = sf.MarkovChain(prior=prior, states=list("abc")).fit(TEXTS).report_.certificate
    assert (good.bound, good.exists) == (True, True)
    assert good.value_gap is not None
    assert good.value_gap < 1e-13
    right = rows.table_distribution
    monkeypatch.setattr(solving, "table_distribution", lambda *a, **k: softened(right(*a, **k)))
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        bad = sf.MarkovChain(prior=prior, states=list("abc")).fit(TEXTS)
    lost = 0.0
    for history, counts in rows_of(TEXTS, 1).items():
        m = np.array([counts[state] for state in "abc"], dtype=float)
        m += prior["abc".index(history[0])] if history else 0.0
        used = m > 0
        lost += float((m[used] * (np.log(m[used] / m.sum()) - np.log(bad.row(history or ["<s>"]).values[used]))).sum())
    steps = sum(map(len, TEXTS))
    assert bad.report_.certificate.value_gap == pytest.approx(lost / steps, rel=1e-9)


def test_rows_beyond_one_gain_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probabilities that add up to more than one have a higher likelihood than any law: the gap is that of the law."""
    right = rows.maximum_likelihood_distribution

    def heavy(*args: Any, **options: Any) -> Any:
        law = right(*args, **options)
        return replace(law, log_p=tuple(values + np.log(1.2) for values in law.log_p))

    monkeypatch.setattr(solving, "maximum_likelihood_distribution", heavy)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        certificate = sf.MarkovChain().fit(TEXTS).report_.certificate
    assert certificate.moment_gap > 0.1
    assert certificate.value_gap is not None
    assert certificate.value_gap >= 0.0


def test_learned_weights_are_bounded_by_their_tangent(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.models.markov_chain import interpolation

    good = sf.MarkovChain(2, smoothing="deleted").fit(TEXTS)
    certificate = good.report_.certificate
    assert (certificate.exists, certificate.bound) == (True, True)
    assert certificate.value_gap is not None
    assert certificate.value_gap < 1e-8
    right = interpolation.learn_weights

    def spoiled(*args: Any) -> Any:
        outcome = right(*args)
        state = replace(outcome.state, parameters=np.clip(outcome.state.parameters * 0.5 + 0.05, 0, 1))
        return replace(outcome, state=replace(state, objective=args[0].used().objective(state.parameters)))

    monkeypatch.setattr(interpolation, "learn_weights", spoiled)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        bad = sf.MarkovChain(2, smoothing="deleted").fit(TEXTS)
    events = sum(max(len(text) - 2, 0) for text in TEXTS)
    # The levels below changed as well; at the top the best weight given them is at least as good as that of the fit.
    monkeypatch.setattr(
        interpolation, "learn_weights", lambda evidence, control: _only_top(right, spoiled, evidence, control)
    )
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        top = sf.MarkovChain(2, smoothing="deleted").fit(TEXTS)
    lost = (top.report_.objective - bad.report_.objective) / events
    assert lost > 1e-4
    assert bad.report_.certificate.value_gap is not None
    assert lost <= bad.report_.certificate.value_gap
    assert bad.report_.certificate.moment_gap > 1e-3


_calls = itertools.count()


def _only_top(right: Any, spoiled: Any, evidence: Any, control: Any) -> Any:
    return (spoiled if next(_calls) % 2 == 0 else right)(evidence, control)


def test_the_slope_of_a_learned_prior_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["abbacabbbcabab", "cababbcbcbacab", "acbaaabcbcbcb", "bbcacacacaacab"]
    good = sf.MarkovChain(prior=1.0, learn_prior=True).fit(texts)
    right = hyper.learn_prior
    assert good.report_.certificate.moment_gap < 1e-8

    def spoiled(*args: Any) -> Any:
        found = right(*args)
        return replace(found, alphas=found.alphas * 1.5)

    monkeypatch.setattr(solving, "learn_prior", spoiled)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        bad = sf.MarkovChain(prior=1.0, learn_prior=True).fit(texts)
    counts = [bad.counts(state) for state in bad.states_]

    def evidence(alpha: np.ndarray) -> float:
        return float(sum(sf.Dirichlet(alpha).log_evidence(row) for row in counts))

    alpha, step = bad.prior_.alpha_, 1e-5
    slopes = []
    for at in range(3):
        move = np.where(np.arange(3) == at, step, 0.0)
        slopes.append((evidence(alpha * np.exp(move)) - evidence(alpha * np.exp(-move))) / (2 * step))
    assert bad.report_.certificate.slope == pytest.approx(np.abs(slopes).max(), rel=1e-5)
    assert bad._judgement().gap == pytest.approx(np.abs(slopes).max() / 3, rel=1e-5)
    # In standard errors: each row adds a slope of its own, and the three are independent.

    def slope_of(row: Any, move: Any) -> float:
        up, down = (sf.Dirichlet(alpha * np.exp(sign * move)).log_evidence(row) for sign in (1.0, -1.0))
        return float(up - down) / (2 * step)

    each = np.array([[slope_of(row, move) for move in step * np.eye(3)] for row in counts])
    in_errors = np.abs(each.sum(axis=0)) / np.sqrt((each**2).sum(axis=0))
    assert bad.report_.certificate.moment_gap == pytest.approx(in_errors.max(), rel=1e-4)


FORMULAS: list[dict[str, Any]] = [
    {"smoothing": sf.KneserNey()},
    {"smoothing": sf.Katz()},
    {"smoothing": sf.AbsoluteDiscount()},
    {"smoothing": sf.Interpolation(0.3)},
    {"prior": sf.DirichletMixture(weights=[0.5, 0.5], alphas=[[3.0, 1.0, 1.0], [1.0, 1.0, 2.0]])},
]


@pytest.mark.parametrize("options", FORMULAS, ids=str)
def test_a_formula_maximises_nothing_and_says_so(options: dict[str, Any]) -> None:
    report = sf.MarkovChain(**options).fit(TEXTS).report_
    certificate = report.certificate
    assert (certificate.exists, certificate.value_gap, certificate.bound) == (None, None, False)
    lines = dict(report.lines())
    assert "maximises nothing" in lines["from optimum"]
    assert lines["maximum exists"] == "not applicable"
    assert "row's sum" in lines["slope"]
    assert sf.Report.from_dict(report.to_dict()).certificate == certificate


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_maximum_exists_where_every_event_was_seen(order: int) -> None:
    states = list("ab")
    every = ["".join(word) for word in itertools.product(states, repeat=order + 2)]
    assert sf.MarkovChain(order).fit(every).report_.certificate.exists is True
    less = [text for text in every if "b" * (order + 1) not in text] if order else ["a", "aa"]
    certificate = sf.MarkovChain(order, states=states).fit(less).report_.certificate
    assert certificate.exists is False
    named = {0: "P(b) -> 0: never seen", 1: "P(b after b) -> 0: never seen", 2: "P(b after b b) -> 0: never seen"}
    assert named[order] in certificate.directions


def test_what_is_named_is_what_was_never_seen() -> None:
    chain = sf.MarkovChain(2).fit(TEXTS)
    missing = set()
    for history, counts in rows_of(TEXTS, 2).items():
        for state in "abc":
            if not counts[state]:
                missing.add(f"P({state}{' after ' + ' '.join(history) if history else ' first'}) -> 0: never seen")
    named = set(chain.report_.certificate.directions)
    more = [text for text in named if "more events never seen" in text]
    assert named - set(more) <= missing
    assert len(named) - len(more) + sum(int(text.split()[0].replace(",", "")) for text in more) == len(missing)


def test_pseudo_counts_decide_existence() -> None:
    assert sf.MarkovChain(prior=0.1).fit(TEXTS).report_.certificate.exists is True
    assert sf.MarkovChain(prior=1.5, estimate="map").fit(TEXTS).report_.certificate.exists is True
    edge = sf.MarkovChain(prior=1.0, estimate="map").fit(TEXTS).report_.certificate
    assert edge.exists is False
    assert any("never seen" in text for text in edge.directions)


def test_the_objective_of_a_posterior_has_the_prior_in_it() -> None:
    chain = sf.MarkovChain(prior=3.0, estimate="map").fit(TEXTS)
    rows = rows_of(TEXTS, 1)
    added = sum(2.0 * np.log(chain.row(history or ["<s>"]).values).sum() for history in rows)
    assert chain.report_.objective == pytest.approx(chain.report_.log_likelihood + added, rel=1e-12)


@pytest.mark.parametrize(
    "options",
    [{}, {"prior": 2.0}, {"prior": 1.0, "learn_prior": True}, {"smoothing": "deleted"}, {"smoothing": sf.KneserNey()}],
)
def test_the_judge_takes_nothing_from_the_solve(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    chain = sf.MarkovChain(2, **options).fit(TEXTS)
    monkeypatch.setattr("suffice.models.markov_chain.task.solve", None)
    fit = chain._fit
    assert fit is not None
    judged = chain._task().problem(fit.data, None).judge(chain.fitted_)
    report = chain.report_
    assert judged.certificate == report.certificate
    assert (judged.log_likelihood, judged.objective, judged.log_evidence) == (
        report.log_likelihood,
        report.objective,
        report.log_evidence,
    )


def test_learned_weights_say_their_iterations() -> None:
    words = [list("abcabbcab"), list("aabbccab"), list("bcabca")]
    chain = sf.MarkovChain(order=2, smoothing=sf.Interpolation("deleted")).fit(words)
    assert chain.converged_
    assert chain.n_iter_ >= 1
    assert len(chain.history_) >= 1
    assert chain.stop_reason_ == "converged"
