"""The audit of the certificates runs, at a size for every day, and finds nothing wrong; and it can fail."""

from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.audit import __main__ as command
from benchmarks.audit.log_linear import Group, LogLinear, Penalty
from benchmarks.audit.record import Coverage, Existence, Record, Sampled, Value
from benchmarks.audit.registry import PROBLEMS
from benchmarks.audit.running import Findings, run, run_one
from benchmarks.audit.tables import coverage, existence, page, sampled, values

import suffice as sf

#: Problems of each kind.
EACH = 3


@pytest.mark.parametrize("kind", PROBLEMS)
def test_no_certificate_is_wrong(kind: str) -> None:
    findings = run({kind: PROBLEMS[kind]}, EACH, 7)
    assert findings.passed, page(findings)
    assert findings.records


def violated(rng: np.random.Generator) -> Iterator[Record]:
    yield Value("a", truth=2e-3, claimed=1e-3, bound=True, converged=True)


def wrong_verdict(rng: np.random.Generator) -> Iterator[Record]:
    yield Existence("b", truth=False, said=True)


def foreign(rng: np.random.Generator) -> Iterator[Record]:
    yield Existence("c", truth=True, said=True)
    raise ZeroDivisionError("of somebody else")


def far_off(rng: np.random.Generator) -> Iterator[Record]:
    yield Sampled("f", z=-9.0)


def with_warning(rng: np.random.Generator) -> Iterator[Record]:
    np.log(np.zeros(1))
    yield Existence("d", truth=True, said=True)


def refused(rng: np.random.Generator) -> Iterator[Record]:
    yield Existence("e", truth=True, said=None)
    raise sf.OptionError("not so")


@pytest.mark.parametrize("problem", [violated, wrong_verdict, far_off, foreign, with_warning])
def test_the_audit_can_fail(
    problem: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "PROBLEMS", {"bad": problem})
    assert command.main(["--problems", "2"]) == 1
    shown = capsys.readouterr().out
    assert ("WRONG bad:0" in shown) != ("FOREIGN bad:0" in shown)


def test_a_refusal_is_no_failure_but_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "PROBLEMS", {"picky": refused})
    assert command.main(["--problems", "2"]) == 0
    assert "| picky | 2 | OptionError: not so |" in capsys.readouterr().out


def test_a_problem_can_be_repeated_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "3", "--repeat", "markov-tables:2"]) == 0
    shown = capsys.readouterr().out
    findings = run({"markov-margins": PROBLEMS["markov-margins"], "markov-tables": PROBLEMS["markov-tables"]}, 6, 3)
    alone = Findings()
    run_one("markov-tables", 2, PROBLEMS["markov-tables"], 3, alone)
    assert alone.records == findings.records[-len(alone.records) :]
    assert all(str(record) in shown for record in alone.records)


def test_kinds_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--problems", "2", "--only", "gaussian-constant"]) == 0
    assert "| GaussianGraph constant column | 0 | 0 | 0 | 2 | 0 | 0 | 0 |" in capsys.readouterr().out
    assert command.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(PROBLEMS)


def test_processes_find_what_one_finds(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for jobs in ("1", "2"):
        assert command.main(["--problems", "12", "--only", "gaussian-", "--jobs", jobs]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


@pytest.mark.parametrize("wrong", [["--only", "nothing"], ["--repeat", "markov-tables"], ["--repeat", "nothing:1"]])
def test_unknown_kinds_are_an_error(wrong: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(wrong)


# -- tables ----------------------------------------------------------------------------------------------------------


def row_of(table: str) -> list[str]:
    return [cell.strip() for cell in table.splitlines()[2].split("|")[1:-1]]


def test_values_are_counted() -> None:
    records = [
        Value("m", 1e-5, 2e-5, bound=True, converged=False),
        Value("m", 3e-5, 2e-5, bound=True, converged=False),
        Value("m", 2e-13, 0.0, bound=True, converged=True),  # By less than rounding.
        Value("m", 2e-2, 1e-3, bound=False, converged=False),
        Value("m", 1e-4, 2e-3, bound=False, converged=False),
        Value("m", 1e-4, 5e-4, bound=False, converged=False),
        Value("m", 1e-4, None, bound=False, converged=True),
    ]
    assert row_of(values(records)) == ["m", "7", "3", "1", "3", "1", "1", "1", "0.0001"]


def test_a_short_page_has_a_row_for_each_class() -> None:
    findings = Findings()
    for name in ("GLM gamma, lasso", "GLM binomial: objective", "Beta, max_iter=1", "GLM poisson"):
        findings.keep("a:0", Value(name, 0.0, 1e-9, bound=True, converged=True))
    rows = [line.split("|")[1:3] for line in page(findings, short=True).splitlines()[4:7]]
    assert [[cell.strip() for cell in row] for row in rows] == [["Beta", "1"], ["GLM", "2"], ["GLM, figures", "1"]]


def test_verdicts_are_counted() -> None:
    said = [(True, True), (True, None), (True, "refused"), (True, False)]
    said += [(False, False), (False, "refused"), (False, None), (False, True)]
    records = [Existence("m", truth, word) for truth, word in said]
    assert row_of(existence(records)) == ["m", "1", "1", "1", "2", "1", "1", "1"]
    assert [record.wrong for record in records] == [False, False, True, True, False, False, False, True]


def test_coverage_has_a_binomial_score() -> None:
    found = row_of(coverage([Coverage("m", 90, 100), Coverage("m", 300, 300)]))
    assert found == ["m", "400", "0.95", "0.975", f"{10 / np.sqrt(400 * 0.95 * 0.05):.3g}"]


def test_warned_answers_stand_apart() -> None:
    found = row_of(sampled([Sampled("m", 1.0), Sampled("m", -3.0), Sampled("m", 50.0, warned=True)]))
    assert found == ["m", "3", "-1", f"{np.sqrt(8):.3g}", "0.5", "3", "1"]


# -- the oracle of log-linear laws -----------------------------------------------------------------------------------


def test_the_oracle_knows_a_binomial() -> None:
    oracle = LogLinear([Group(np.array([[0.0], [1.0]]), np.array([0.25, 0.75]))])
    assert oracle.exists
    assert oracle.optimum() == pytest.approx(0.25 * np.log(0.25) + 0.75 * np.log(0.75), abs=1e-15)
    assert not LogLinear([Group(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))]).exists
    assert LogLinear([Group(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))]).optimum() == pytest.approx(0.0, abs=1e-15)


def test_the_oracle_knows_a_soft_threshold() -> None:
    # At 0 the slope is 1/4 a row, and the penalty holds it there if its rate is above 1/4 of 8 rows.
    group = Group(np.array([[0.0], [1.0]]), np.array([0.25, 0.75]), 8.0)
    held = LogLinear([group], Penalty(np.zeros(1), np.zeros((1, 1)), np.full(1, 2.1)))
    assert held.optimum() == pytest.approx(-np.log(2.0), abs=1e-15)
    free = LogLinear([group], Penalty(np.zeros(1), np.zeros((1, 1)), np.full(1, 0.8)))
    weight = np.log(0.65 / 0.35)  # The mean less the rate over the rows.
    assert free.optimum() == pytest.approx(free.value(np.array([weight])), abs=1e-15)
    assert free.optimum() > held.value(np.zeros(1))
