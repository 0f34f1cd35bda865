"""How well rows and findings fit a network: conflict of evidence, surprise of rows, and the part of every node."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats
from suffice.checks import whole_number
from suffice.errors import DataError, EstimateError, OptionError, listing
from suffice.models.bayesian.fitted import NetworkFitted
from suffice.models.evidence import read_evidence

if TYPE_CHECKING:
    from suffice.fitting.parameter_table import NumberTable

#: Log-likelihoods that differ by less, relative to their size, are equal but for rounding.
ROUNDING = 1e-9


def conflict(net: Any, given: Mapping[Any, Any]) -> float:
    """The conflict measure of Jensen: the logarithm of P(e1) P(e2) ... / P(e1, e2, ...) of findings, in nats.

    Findings that support each other make it negative. Above 0 they are rarer together than independent ones: one
    of them may be wrong, or the network does not hold for this case. It is infinite where they cannot occur together.
    """
    fitted: NetworkFitted = net.fitted_
    if len(read_evidence(fitted.domain, given).names) < 2:
        raise OptionError("A conflict is one between findings; give at least two.")
    alone = {name: fitted.log_probability({name: value}) for name, value in given.items()}
    impossible = [name for name, value in alone.items() if value == -math.inf]
    if impossible:
        raise EstimateError(f"The findings of {listing(impossible)} have probability 0 by themselves.")
    return float(sum(alone.values()) - fitted.log_probability(given))


def surprise(net: Any, rows: Any, *, n: int = 10_000, random_state: Any = None, columns: Any = None) -> Floats:
    """How improbable each row is under the model: the share of draws of it that are not more likely than the row.

    A row whose share is 0.001 is less likely than 999 of 1,000 rows of the network. The draws of a row show what the
    row shows; missing values of both are summed out. The row itself counts as one of them, so that it is never 0.

    Args:
        net: the network.
        rows: a frame, a dict of columns, a file, or an array with `columns`.
        n: number of draws.
        random_state: seed of the draws.
        columns: for an array, the names of its columns.

    Returns:
        A share (rows,) above 0 and at most 1, whose standard error is at most ``0.5 / sqrt(n)``.
    """
    count, fitted = whole_number(n, "n", 1), net.fitted_
    infer = fitted.inference
    drawn = _together(fitted, fitted.sample(count, random_state=random_state), None)
    known = _together(fitted, rows, columns)
    size = len(next(iter(known.values()))) if known else 0
    logs: Floats = infer.log_likelihood(known, size) if size else np.zeros(0)
    shown = np.stack([_is_known(values) for values in known.values()], axis=1) if size else np.zeros((0, 1), dtype=bool)
    patterns, pattern_of = np.unique(shown, axis=0, return_inverse=True)
    shares = np.empty(size)
    for number, pattern in enumerate(patterns):
        some = np.flatnonzero(pattern_of.ravel() == number)
        seen = {name: drawn[name] for name, is_known in zip(known, pattern, strict=True) if is_known}
        others = np.sort(infer.log_likelihood(seen, count)) if seen else np.zeros(count)
        ends = logs[some] + ROUNDING * np.maximum(1.0, np.abs(np.where(np.isfinite(logs[some]), logs[some], 0.0)))
        shares[some] = (1.0 + np.searchsorted(others, ends, side="right")) / (count + 1.0)
    return shares


def node_scores(net: Any, rows: Any, *, columns: Any = None) -> NumberTable:
    """What each node has in the log-likelihood of complete rows, and how far its table is from them.

    Args:
        net: the network.
        rows: a frame, a dict of columns, a file, or an array with `columns`; with all nodes and no missing values.
        columns: for an array, the names of its columns.

    Returns:
        A table: ``log-likelihood``, which adds up to that of the rows; ``entropy`` of the node given its parents, in
        nats, under the network, which adds up to that of the joint distribution; ``KL``, the divergence, in nats a
        row, of the shares of the rows from the table, 0 for maximum likelihood and its own rows. Blank where there is
        no closed form.
    """
    from suffice.fitting.parameter_table import NumberTable

    fitted: NetworkFitted = net.fitted_
    known = _together(fitted, rows, columns)
    absent = [name for name in fitted.nodes if name not in known or not _is_known(known[name]).all()]
    if absent:
        raise DataError(
            f"{listing(absent)} has no column or lacks values, and the log-likelihood of a row that lacks some is "
            "no sum over nodes. Give complete rows; impute(rows) fills them in."
        )
    size = len(next(iter(known.values()))) if known else 0
    if not size:
        raise DataError("There are no rows to score.")
    exact = all(node.is_exact for node in fitted.nodes.values())
    table, total, whole = [], 0.0, 0.0
    for name, node in fitted.nodes.items():
        logs = node.log_prob(known)
        value = float(logs.sum())
        entropy = _entropy(fitted, name) if exact else math.nan
        kinds = {fitted.domain[one].kind for one in node.domain.names}
        away = math.nan
        if kinds == {"discrete"}:
            away = float(_log_shares(known, node.domain.names).mean() - logs.mean())
            away = 0.0 if abs(away) < 1e-13 else away
        total, whole = total + value, whole + entropy
        table.append((str(name), (value, entropy, away)))
    head = [("Rows", f"{size:,}"), ("Log-likelihood", f"{total:.6g}"), ("Entropy", f"{whole:.6g}")]
    return NumberTable(tuple(head[: 3 if exact else 2]), ("log-likelihood", "entropy", "KL"), tuple(table))


def _together(fitted: NetworkFitted, rows: Any, columns: Any) -> dict[Hashable, NDArray[Any]]:
    """The columns that are nodes, coded, as whole columns."""
    from suffice.models.row_answers import coded_columns

    parts = [part for part, _ in coded_columns(rows, fitted.inference.domain, columns)]
    return {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else {})}


def _is_known(values: NDArray[Any]) -> NDArray[np.bool_]:
    return ~np.isnan(values) if values.dtype.kind == "f" else values >= 0


def _entropy(fitted: NetworkFitted, name: Hashable) -> float:
    """H(node | parents) under the network."""
    node = fitted.nodes[name]
    discrete = [parent for parent in node.domain.names[:-1] if fitted.domain[parent].kind == "discrete"]
    weights = fitted.query(discrete).values if discrete else np.ones(())
    with np.errstate(divide="ignore", invalid="ignore"):
        if fitted.domain[name].kind == "discrete":
            p = node.table_.values
            each = -np.where(p > 0, p * np.log(p), 0.0).sum(axis=-1)
        else:
            each = 0.5 * np.log(2.0 * math.pi * math.e * np.asarray(node.variance_))
    used = weights > 0
    return float((weights * np.where(used, each, 0.0)).sum())


def _log_shares(known: Mapping[Hashable, NDArray[Any]], family: tuple[Hashable, ...]) -> Floats:
    """The logarithm of the share n(parents, node) / n(parents) of each row (n,)."""
    codes = np.stack([known[name] for name in family], axis=1)
    counts = []
    for part in (codes, codes[:, :-1]):
        _, pattern_of, seen = np.unique(part, axis=0, return_inverse=True, return_counts=True)
        counts.append(seen[pattern_of.ravel()])
    return np.asarray(np.log(counts[0] / counts[1]))
