"""The judge of every model is none of its solvers: results that were moved on their way into the model are seen.

Whatever a solver says about its result, the certificate, the log-likelihood and `converged_` are measured at the
parameters that the model has.
"""

import warnings
from typing import Any

import numpy as np
import pytest

from suffice.errors import ConvergenceWarning
from tampered_cases import CASES
from tampered_regressions import REGRESSIONS

EACH = {**CASES, **REGRESSIONS}


def fitted(name: str) -> tuple[Any, list[str]]:
    """A fit whose report has been read, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = EACH[name].fit()
        str(model.report_)
    return model, [str(one.message) for one in caught if issubclass(one.category, ConvergenceWarning)]


@pytest.mark.parametrize("name", EACH)
def test_a_result_that_was_tampered_with_has_not_converged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = EACH[name]
    good, silence = fitted(name)
    assert good.converged_
    assert silence == []
    case.spoil(monkeypatch)
    bad, said = fitted(name)
    certificate, honest = bad.report_.certificate, good.report_.certificate
    assert not bad.converged_
    assert len(said) == 1
    assert "not converged" in said[0]
    assert certificate.moment_gap > max(2.0 * honest.moment_gap, 1e-3)
    if case.value is None:
        return
    best, here = case.value(good), case.value(bad)
    size = abs(best) + abs(here)
    if not case.sampled or "pseudolikelihood" in name:
        np.testing.assert_allclose([good.report_.objective, bad.report_.objective], [best, here], atol=1e-9 * size)
    lost = (best - here) / case.scale
    assert lost > 1e-4
    if certificate.bound:
        assert certificate.value_gap >= lost * (1.0 - 1e-9)
    elif certificate.value_gap is not None:
        assert certificate.value_gap > 0.1 * lost
