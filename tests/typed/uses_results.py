"""Every documented attribute of reports, certificates, tables and summaries, as a checker in strict mode reads them."""

from collections.abc import Hashable, Iterator
from typing import Any, assert_type

import suffice as sf
from suffice.fitting.report import Curvature, MonteCarlo

ROWS = {"a": [0, 0, 1, 1, 1, 0], "b": [0, 1, 1, 1, 0, 0]}


def receipt(report: sf.Report) -> None:
    assert_type(report.model, str)
    assert_type(report.rows, int)
    assert_type(report.weight, float)
    assert_type(report.passes, int)
    assert_type(report.method, str)
    assert_type(report.estimate, str)
    assert_type(report.log_likelihood, float)
    assert_type(report.objective, float)
    assert_type(report.n_params, int)
    assert_type(report.aic, float)
    assert_type(report.bic, float | None)
    assert_type(report.converged, bool)
    assert_type(report.iterations, int)
    assert_type(report.history, tuple[float, ...])
    assert_type(report.stop_reason, str)
    assert_type(report.plan, str | None)
    assert_type(report.log_evidence, float | None)
    assert_type(report.warnings, tuple[str, ...])
    assert_type(report.lines(), list[tuple[str, str]])
    assert_type(report.to_dict(), dict[str, Any])
    assert_type(report.to_html(title="A fit"), str)


def proof(certificate: sf.Certificate) -> None:
    assert_type(certificate.moment_gap, float)
    assert_type(certificate.value_gap, float | None)
    assert_type(certificate.bound, bool)
    assert_type(certificate.exact, bool)
    assert_type(certificate.exists, bool | None)
    assert_type(certificate.directions, tuple[str, ...])
    assert_type(certificate.slope, float | None)
    assert_type(certificate.slope_unit, str)
    assert_type(certificate.engine, str)
    assert_type(certificate.monte_carlo, MonteCarlo | None)
    assert_type(certificate.curvature, Curvature | None)
    assert_type(certificate.lines(), list[tuple[str, str]])


def labelled(table: sf.Table) -> None:
    assert_type(table.variables, tuple[Hashable, ...])
    assert_type(table.domain, sf.Domain)
    assert_type(table.allclose(table), bool)
    assert_type(table.items(), Iterator[tuple[tuple[Hashable, ...], float]])
    assert_type(table.transpose(["b", "a"]), sf.Table)
    assert_type(table.marginal("a"), sf.Table)
    assert_type(table.normalize(), sf.Table)
    table.at(a=0, b=1)
    table.sel(a=0)
    table[0, 1]


def kept(summary: sf.Summary) -> None:
    assert_type(summary + summary, sf.Summary)
    assert_type(summary.rows, int)
    assert_type(summary.weight, float)
    assert_type(summary.domain, sf.Domain)
    assert_type(summary.holds_rows, bool)


def main() -> None:
    net = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(ROWS)
    receipt(net.report_)
    proof(net.report_.certificate)
    labelled(net.table("b"))
    kept(sf.summarize(net, ROWS))
