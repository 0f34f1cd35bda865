"""Fitted distributions with other parameters than those that were learned, and what their certificate then says."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suffice.fitting.driver import Fit
from suffice.fitting.report import Certificate


def with_parameters(law: Any, parameters: Mapping[str, Any]) -> Any:
    """The distribution with these parameters, as if its fit had found them."""
    return law._with_fit(Fit(replace(law.fitted_, member=law.fitted_.member.at(parameters)), data=law._fit.data))


def certificate_of(law: Any) -> Certificate:
    """The certificate of the parameters as they are, for the statistics that were learned."""
    found: Certificate = law._task().problem(law._fit.data, None).judge(law.fitted_).certificate
    return found
