"""Every option of every method changes the answer, is refused, or is told of: asked by introspection.

The signatures of a model's class say which options there are, and `option_settings` holds a value for each of them. A
call with that value must not be the call without it: another answer, an error, or a warning that it is not used. An
option without a value fails: a new one cannot be forgotten.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from option_settings import SETTINGS

CASES = [
    (name, method, tuple(needed), option)
    for name, setting in SETTINGS.items()
    for method, needed, options in setting.methods()
    for option in options
]

#: Answers that a value may leave as they are: two states are matched in one of two ways.
MAY_BE_EQUAL = {("match_states", option) for option in ("method", "lengths", "order", "columns")}


def plain(value: Any) -> Any:
    """An answer as lists, numbers and texts."""
    if hasattr(value, "get_params"):
        return plain(value.to_dict() if hasattr(value, "to_dict") else value.fitted_.to_dict())
    if isinstance(value, pd.DataFrame | pd.Series):
        return [str(value.index.tolist()), plain(value.to_numpy())]
    if isinstance(value, sf.Table):
        return [plain(value.values), repr(value)]
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items() if name != "report"}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, float | int | str):
        return value
    public = [name for name in dir(value) if not name.startswith("_") and not callable(getattr(value, name))]
    return {name: plain(getattr(value, name)) for name in public}


def outcome(call: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[str | sf.SufficeError, list[str]]:
    """The answer of a call as text, or its error; and what it warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer: str | sf.SufficeError = repr(plain(call(**arguments)))
        except sf.SufficeError as error:
            answer = error
    return answer, sorted({str(one.message) for one in told})


@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeWarning")
@pytest.mark.parametrize(("name", "method", "needed", "option"), CASES)
def test_an_option_of_a_method_is_not_ignored(name: str, method: str, needed: tuple[str, ...], option: str) -> None:
    setting = SETTINGS[name]
    arguments = setting.arguments(method, needed, option)
    (answer, told), (tried, told_then) = (
        outcome(getattr(setting.make(), method), more)
        for more in (arguments, {**arguments, option: setting.value(method, option)})
    )
    if isinstance(answer, sf.SufficeError) and isinstance(tried, sf.SufficeError):
        # The method is not for this model as it is, which the option cannot change; else the setting tries nothing.
        assert isinstance(tried, sf.OptionError | sf.NotFittedError)
    elif (method, option) not in MAY_BE_EQUAL:
        assert (str(answer), told) != (str(tried), told_then)


def test_every_model_has_a_setting() -> None:
    models = {name for name in sf.__all__ if hasattr(getattr(sf, name), "fit")}
    given = {"BetaNegativeBinomial", "BetaPrime", "DirichletMixture", "DirichletMultinomial", "Laplace", "Lomax"}
    given |= {
        "LinearGaussianPrior",
        "MultivariateStudentT",
    }  # Never fitted: what they take is a number of draws.
    given |= {"DynamicBayesianNetwork"}  # Its own tests go through what it takes.
    assert {type(setting.make()).__name__ for setting in SETTINGS.values()} == models - given
