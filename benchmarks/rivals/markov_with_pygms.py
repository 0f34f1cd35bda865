"""pyGMs: iterative proportional fitting of an Ising model, and its junction tree."""

from __future__ import annotations

import random

import numpy as np
from pygms.factor import Factor, Var
from pygms.graphmodel import GraphModel, eliminationOrder
from pygms.ising import Ising, refit_ipf
from pygms.wmb import JTree

from benchmarks.contender import Data, Run
from benchmarks.log_linear import GAP, Cliques


def fit(data: Data, *, sweeps: int) -> Run:
    """Binary pairs only; at most so many sweeps, each of which calibrates once for every pair."""
    cliques = Cliques.of(data)
    rows = np.ascontiguousarray(data["codes"].T.astype(np.int64))

    def run() -> object:
        random.seed(0)
        # A pair without interaction would not be kept as an edge.
        pairs = [Factor([Var(i, 2), Var(j, 2)], [1.0, 0.99, 0.99, 1.0]) for i, j in cliques.scopes]
        model = Ising(pairs)
        refit_ipf(model, rows, maxiter=sweeps, stoptol=GAP, alpha=0.0)
        couplings = model.L.toarray()
        signs = np.array([-1.0, 1.0])
        singles = [((at,), model.h[at] * signs) for at in range(len(cliques.cards))]
        return singles + [((i, j), couplings[i, j] * np.outer(signs, signs)) for i, j in cliques.scopes]

    return run


def calibrations(data: Data, *, times: int) -> Run:
    """The beliefs of all scopes; the order of elimination is found before."""
    cliques = Cliques.of(data)
    variables = [Var(at, card) for at, card in enumerate(cliques.cards)]
    tables = list(cliques.split(data["logs"]))
    factors = []
    for scope, logs in zip(cliques.scopes, tables, strict=True):
        ordered = sorted(range(len(scope)), key=lambda axis: scope[axis])
        factor = Factor([variables[v] for v in scope], 1.0)
        factor.t[...] = np.exp(logs.transpose(ordered))
        factors.append(factor)
    model = GraphModel(factors)
    order = eliminationOrder(model, "minfill")[0]
    wanted = [factor.vars for factor in factors]

    def run() -> object:
        for _ in range(times):
            tree = JTree(model, elimOrder=order)
            log_z = tree.msgForward()
            tree.msgBackward(beliefs=wanted)
        return float(log_z)

    return run
