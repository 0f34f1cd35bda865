"""Cases that differ in all of their factors, on one junction tree: each equals a model of its own."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from suffice.engines.enumeration import plan_enumeration
from suffice.engines.junction_tree import plan_tree
from suffice.engines.tree_batches import TreeBatch
from suffice.errors import OptionError
from suffice.kernels.choice import force

CARDS = {"a": 2, "b": 3, "c": 2, "d": 1}
SCOPES = [("a",), ("a", "b"), ("c", "b"), ("c", "a"), ("a", "b"), ("d", "c")]


def tables_of(row: Any, batch: Any) -> Any:
    shapes = [tuple(CARDS[name] for name in scope) for scope in SCOPES]
    return [part.reshape(shape) for part, shape in zip(np.split(row, batch.starts[1:]), shapes, strict=True)]


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
def test_every_case_equals_a_model_of_its_own(mode: Any) -> None:
    plan = plan_tree(CARDS, SCOPES)
    batch = TreeBatch(plan, SCOPES)
    logs = np.random.default_rng(0).normal(scale=3.0, size=(7, batch.width))
    with force(mode):
        log_z, marginals = batch.solve(logs, calls=1)
        states = batch.best(logs)
    for case, row in enumerate(logs):
        tables = tables_of(row, batch)
        law = plan_enumeration(CARDS, SCOPES).load(tables, log=True)
        assert log_z[case] == pytest.approx(law.log_partition(), abs=1e-12)
        expected = law.condition().factor_marginals()
        assert_allclose(marginals[case], np.concatenate([np.ravel(table) for table in expected]), atol=1e-12)
        best = law.most_probable().states
        assert states[case].tolist() == [best[name] for name in CARDS]


def test_numbers_that_are_not_finite_give_nan_and_scopes_outside_are_refused() -> None:
    plan = plan_tree({"a": 2, "b": 2, "c": 2}, [("a", "b"), ("b", "c")])
    batch = TreeBatch(plan, [("a", "b")])
    assert np.isnan(batch.solve(np.full((1, 4), np.inf))[0]).all()
    with pytest.raises(OptionError, match="not together in a clique"):
        TreeBatch(plan, [("a", "c")])
    with pytest.raises(OptionError, match="expected \\(cases, 4\\)"):
        batch.solve(np.zeros((2, 3)))


def test_variables_with_a_single_state_have_one_joint_state() -> None:
    plan = plan_tree({"a": 1, "b": 1}, [("a", "b")])
    log_z, marginals = TreeBatch(plan, [("a",), ("a", "b")]).solve(np.array([[1.0, 2.5]]))
    assert log_z.tolist() == [3.5]
    assert marginals.tolist() == [[1.0, 1.0]]
