"""The receipt of a fit, and the figures in it."""

import json
import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf
from fuzz.zoo import ZOO


def report(**changes: object) -> sf.Report:
    certificate = sf.Certificate(moment_gap=3.2e-12, value_gap=1e-20, exists=True)
    fields: dict[str, object] = {
        "model": "Normal",
        "rows": 12,
        "weight": 12.0,
        "passes": 1,
        "method": "closed form",
        "estimate": "maximum likelihood",
        "log_likelihood": -12.901672,
        "objective": -12.901672,
        "n_params": 3,
        "certificate": certificate,
    }
    return sf.Report(**{**fields, **changes})  # type: ignore[arg-type]


def test_criteria_use_the_natural_logarithm_and_smaller_is_better() -> None:
    # 12 rows, 3 parameters and a log-likelihood of -12.901672 have the published score -16.629032.
    found = report()
    assert found.bic_score == pytest.approx(-16.629032, abs=5e-7)
    assert found.bic == pytest.approx(2 * 16.629032, abs=1e-6)
    assert found.aic == pytest.approx(6 + 2 * 12.901672)


def test_the_receipt_has_the_words_of_the_field() -> None:
    rows = {"a": [0, 1, None, 1, 0], "b": [0, 1, 1, None, 0]}
    text = str(sf.BayesianNetwork([("a", "b")], prior=1.5).fit(rows).report_)
    assert "MAP, under Dirichlet priors of the pseudo-counts + 1, of which each M-step is a posterior mean" in text
    assert ", from a summary" in str(report(passes=0))
    assert ", read once" in str(report())
    assert "12, in 82 passes" in str(report(passes=82))
    assert "1.0e-20 nats per row" in str(report(converged=True, stop_reason="gradient", iterations=3))


def test_the_receipt_is_short_and_says_what_was_done() -> None:
    text = str(report(weight=24.0, warnings=tuple(f"warning {k}" for k in range(40)), iterations=7, converged=False))
    assert len(text.splitlines()) <= 25
    for part in ("12, weight 24, read once", "maximum likelihood", "7, NOT converged", "moment gap", "36 more"):
        assert part in text


def test_existence_is_yes_no_or_not_decided() -> None:
    def line(**changes: object) -> str:
        certificate = sf.Certificate(moment_gap=0.0, **changes)  # type: ignore[arg-type]
        return dict(certificate.lines())["maximum exists"]

    assert line(exists=True) == "yes"
    assert line(exists=None) == "not decided"
    assert line(exists=False, directions=("log odds -> inf",)) == "no: log odds -> inf"


def test_the_gap_says_whether_it_is_a_bound() -> None:
    def line(**changes: object) -> str:
        return dict(sf.Certificate(0.0, **changes).lines())["from optimum"]  # type: ignore[arg-type]

    assert line(value_gap=1e-9, bound=True) == "at most 1.0e-09 nats per row"
    assert line(value_gap=1e-9) == "about 1.0e-09 nats per row"
    assert line() == "unknown"


def test_a_closed_form_is_exact() -> None:
    def line(**changes: object) -> str:
        return dict(report(**changes).lines())["from optimum"]

    tight, loose = sf.Certificate(0.0, value_gap=1e-15, bound=True), sf.Certificate(0.0, value_gap=1e-3, bound=True)
    assert line(certificate=sf.Certificate(0.0)) == "exact (a closed form)"
    assert line(certificate=tight) == "exact (a closed form), at most 1.0e-15 nats per row"
    assert line(certificate=loose) == "at most 1.0e-03 nats per row"
    assert line(certificate=tight, iterations=3, stop_reason="converged") == "at most 1.0e-15 nats per row"
    assert line(certificate=sf.Certificate(0.0), converged=False, stop_reason="denied by the certificate") == "unknown"
    assert line(certificate=sf.Certificate(0.0, exists=False)) == "unknown"


def test_a_prompt_shows_the_receipt() -> None:
    found = report()
    assert repr(found) == str(found)
    assert repr(found.certificate) == str(found.certificate)
    assert "Certificate(" not in repr(found)


def test_a_page_has_the_title_that_it_is_given() -> None:
    page = report(model="GLM").to_html(title="Doctor visits <2026>")
    assert "<title>Doctor visits &lt;2026&gt; · suffice</title>" in page
    assert "<h1>Doctor visits &lt;2026&gt;</h1>" in page
    assert "GLM · maximum likelihood from 12 rows" in page
    assert "<h1>GLM</h1>" in report(model="GLM").to_html()


def test_estimates_have_the_three_names_of_the_field() -> None:
    rows: dict[str, list[object]] = {"a": [0, 1, 1, 0, 1, None], "b": [0, 1, 1, 1, 0, 0]}
    whole = {name: values[:5] for name, values in rows.items()}
    network = [("a", "b")]
    sequences = [["x", "y", "x", "y", "y", "x"]]
    fits: dict[str, list[Any]] = {
        "maximum likelihood": [sf.BayesianNetwork(network).fit(whole), sf.BayesianNetwork(network).fit(rows)],
        "posterior mean": [sf.BayesianNetwork(network, prior=1.0).fit(whole)],
        "MAP": [
            sf.BayesianNetwork(network, prior=1.0).fit(rows),
            sf.BayesianNetwork(network, prior=2.0, estimate="map").fit(whole),
            sf.HiddenMarkovModel(2, sf.Categorical(), prior=1.0, n_init=2).fit(sequences),
        ],
    }
    for name, models in fits.items():
        for model in models:
            assert model.report_.estimate == name
            assert not any("runs" in text for text in model.report_.warnings)


#: Rules that maximise nothing: none of the three names would be true.
SMOOTHED = {"chain-kneser-ney", "chain-interpolation"}
#: What is known of a fit whose nodes have different estimates: Newton climbs to the mode where tables have the mean.
SEVERAL = dict.fromkeys(("network-noisy-or", "network-noisy-max", "network-constrained"), "posterior mean and MAP")


@pytest.mark.parametrize("name", ZOO)
def test_every_model_has_one_of_the_three_names(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ZOO[name].make()
    if getattr(model, "_fit", None) is None or model._fit.report is None:
        return  # A summary, or a distribution that was given.
    said, prior = model.report_.estimate, model.get_params(deep=False).get("prior")
    if name in SMOOTHED or name in SEVERAL:
        assert said == SEVERAL.get(name, "smoothed frequencies")
    else:
        assert said in (("maximum likelihood",) if prior is None else ("MAP", "posterior mean"))


@pytest.mark.parametrize("smoothing", ["deleted", "held-out", "absolute", "katz", "kneser-ney"])
def test_smoothing_is_called_by_no_name_that_is_untrue(smoothing: Any) -> None:
    words = [list("abcabcaab"), list("bca")]
    more: dict[str, Any] = {"held_out": [list("cacb")]} if smoothing == "held-out" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smoothed = sf.MarkovChain(1, smoothing=smoothing).fit(words, **more)
    assert smoothed.report_.estimate == "smoothed frequencies"
    # It is not the maximum: plain rows of the same order are more probable, by far more than rounding.
    assert smoothed.log_likelihood_ < sf.MarkovChain(1).fit(words).log_likelihood_ - 1e-3


def test_html_escapes_what_it_shows() -> None:
    html = report(model="<script>")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "maximum likelihood" in html


def test_plain_data_goes_through_json() -> None:
    found = json.loads(json.dumps(report().to_dict()))
    assert found["certificate"]["moment_gap"] == 3.2e-12
    assert found["bic_score"] == report().bic_score
    assert sf.Report.from_dict(report().to_dict()) == report()


def test_divergence_is_minus_entropy_minus_likelihood() -> None:
    assert report().kl_divergence is None
    found = report(empirical_entropy=0.5)
    assert found.kl_divergence == pytest.approx(-0.5 + 12.901672 / 12)


def test_no_rows_have_no_bic() -> None:
    empty = report(rows=0, weight=0.0)
    assert (empty.bic, empty.bic_score) == (None, None)
    assert "BIC" not in str(empty)


@pytest.mark.parametrize(
    ("field", "value"),
    [("log_likelihood", "x"), ("rows", None), ("converged", 1), ("exists", "yes"), ("history", [None])],
)
def test_a_damaged_report_is_refused(field: str, value: object) -> None:
    plain = report().to_dict()
    (plain["certificate"] if field == "exists" else plain)[field] = value
    with pytest.raises(sf.FileFormatError):
        sf.Report.from_dict(plain)


@pytest.mark.parametrize(
    ("name", "value"),
    [("starts", {}), ("starts", -3), ("starts", None), ("smallest", "x"), ("point", 7), ("point", "summit")],
)
def test_a_damaged_curvature_is_refused_when_it_is_read(name: str, value: object) -> None:
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.ConvergenceWarning)
        model = sf.HiddenMarkovModel(2, sf.Normal(), max_iter=3).fit([rng.normal(size=30).tolist()])
    plain = model.report_.to_dict()
    assert sf.Report.from_dict(plain) == model.report_
    plain["certificate"]["curvature"][name] = value
    with pytest.raises(sf.FileFormatError):
        sf.Report.from_dict(plain)


def test_a_network_with_a_part_that_was_iterated_is_no_closed_form() -> None:
    rows = {"u": [1.0, 2.5, 3.0, 4.5, 2.0, 0.5], "n": [0, 1, 3, 5, 1, 0]}
    net = sf.BayesianNetwork([("u", "n")], nodes={"n": sf.GLM(family=sf.Poisson())}).fit(rows)
    assert "Newton for 'n'" in net.report_.method
    assert (net.stop_reason_, net.converged_, net.report_.is_exact) == ("converged", True, False)
    assert dict(net.report_.lines())["from optimum"].startswith("at most")
