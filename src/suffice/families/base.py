"""What every distribution can do: hold parameters, evaluate, sample, fit."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.array_types import Floats
from suffice.attributes import read_parameters
from suffice.checks import generator as generator
from suffice.domain import Variable, is_missing
from suffice.errors import MergeError, OptionError, SufficeError, listing, shortened
from suffice.fitting.estimator import SummaryEstimator
from suffice.fitting.summaries import SummaryTask
from suffice.statistics import Summary

if TYPE_CHECKING:
    from suffice.families.fitted import FamilyFitted
    from suffice.fitting.portrait import Portrait


#: What draws begin with: a seed, a generator that goes on, or None for a fresh one.
Seed = int | Sequence[int] | np.random.SeedSequence | np.random.BitGenerator | np.random.Generator | None

#: What a column is called that has no name.
UNNAMED = "x"
#: Probabilities may miss a sum of one by this much; they are then divided by their sum.
SUM_TOLERANCE = 1e-9
#: Parameters below it have lost digits, and one over them may be no number.
SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
#: The log-gamma function of larger numbers leaves float64.
LARGEST_SHAPE = 1e305
#: Squares of distances between smaller numbers are numbers of float64.
LARGEST_LOCATION = 5e153
#: Positive numbers up to it can be divided by a small one, and added up.
LARGEST_SCALE = 1e304


def as_array(values: Any, name: str = "x", error: type[SufficeError] = OptionError) -> NDArray[Any]:
    """An array of whatever type the values have; rows of different lengths are an error."""
    try:
        return np.asarray(values)
    except ValueError:
        raise error(f"{name} is {shortened(values)}; expected values, in rows of one length.") from None


def as_numbers(values: Any, name: str = "x", error: type[SufficeError] = OptionError) -> Floats:
    """The values as float64, NaN for a missing value; text, dates and complex numbers are an error that names one."""
    array, wrong = as_array(values, name, error), None
    if array.dtype.kind == "O" or (array.dtype.kind in "SUc" and array.size):
        given = np.asarray(values, dtype=object)
        wrong = next((v for v in given.flat if not (_is_number(v) or is_missing(v))), None)
        if wrong is None:
            array = np.array([_as_double(v) for v in given.flat]).reshape(array.shape)
    elif array.dtype.kind not in "biuf":
        wrong = array.flat[0].item() if array.size else array.dtype
    if wrong is not None:
        raise error(f"{name} holds {shortened(wrong)} ({type(wrong).__name__}); expected numbers.")
    with np.errstate(over="ignore"):  # Wider floats beyond float64.
        return array.astype(np.float64, copy=False)


def _is_number(value: Any) -> bool:
    """Whether a value stands for a real number; scalars of NumPy all claim to, complex ones and texts included."""
    if isinstance(value, np.generic):
        return isinstance(value, np.bool_ | np.integer | np.floating)
    return hasattr(value, "__float__") and not isinstance(value, type)


def _as_double(value: Any) -> float:
    """A number as float64: NaN for a missing value, +-inf beyond the range."""
    if is_missing(value):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_floats(values: Any, name: str, error: type[SufficeError] = OptionError) -> Floats:
    """A read-only copy as a float64 array of finite numbers, or an error that names the argument and what is not."""
    array = np.array(as_numbers(values, name, error))
    if not np.isfinite(array).all():
        wrong = np.asarray(values, dtype=object)[~np.isfinite(array)].flat[0]
        raise error(f"{name} {'holds' if array.ndim else 'is'} {shortened(wrong)}; expected finite numbers.")
    array.flags.writeable = False
    return array


def as_float(value: Any, name: str, *, above: float | None = None, least: float | None = None) -> float:
    """A finite number, above (or at least) a bound, or an error that names the argument."""
    array = as_floats(value, name)
    expected = (
        "a number"
        + ("" if above is None else f" above {above:g}")
        + ("" if least is None else f" of at least {least:g}")
    )
    if array.ndim == 0 and above == 0 and 0 < array < SMALLEST_NORMAL:
        least, expected = SMALLEST_NORMAL, f"a number of at least {SMALLEST_NORMAL:.3g}, below which digits are lost"
    if array.ndim != 0 or (above is not None and not array > above) or (least is not None and not array >= least):
        raise OptionError(f"{name} is {shortened(value)}; expected {expected}.")
    return float(array)


def as_shape(value: Any, name: str) -> float:
    """A positive number whose log-gamma function is a number too, or an error that names the argument."""
    number = as_float(value, name, above=0)
    if number > LARGEST_SHAPE:
        raise OptionError(
            f"{name} is {number!r}; expected a number of at most {LARGEST_SHAPE:g}, beyond which its log-gamma "
            "function leaves float64."
        )
    return number


def as_location(values: Any, name: str) -> Floats:
    """Finite numbers whose squares are numbers too, or an error that names the argument."""
    numbers = as_floats(values, name)
    if (np.abs(numbers) > LARGEST_LOCATION).any():
        raise OptionError(
            f"{name} is {shortened(values)}; expected numbers of at most {LARGEST_LOCATION:g} in size, whose squares "
            "are numbers of float64. Use another unit."
        )
    return numbers


def as_scale(value: Any, name: str) -> float:
    """A positive number with room for sums and products of such, or an error that names the argument."""
    number = as_float(value, name, above=0)
    if number > LARGEST_SCALE:
        raise OptionError(f"{name} is {number!r}; expected a number of at most {LARGEST_SCALE:g}.")
    return number


def are_shapes(values: Floats) -> bool:
    """Whether every number is one that `as_shape` takes."""
    return bool(((values >= SMALLEST_NORMAL) & (values <= LARGEST_SHAPE)).all())


def as_shares(values: ArrayLike, name: str) -> Floats:
    """An array of numbers from 0 to 1, or an error that names the argument."""
    array = as_floats(values, name)
    if (array < 0).any() or (array > 1).any():
        raise OptionError(f"{name} is {values!r}; expected numbers from 0 to 1.")
    return array


def as_probabilities(values: ArrayLike, name: str) -> Floats:
    """An array (K,) of numbers of at least 0 that add up to one, or an error that names the argument.

    A sum that misses one by a little is divided out; one that misses it by rounding alone is left, so that what was
    checked once keeps its bits.
    """
    array = as_floats(values, name)
    total = np.minimum(array, 2.0).sum()
    if array.ndim != 1 or len(array) == 0 or (array < 0).any() or abs(total - 1) > SUM_TOLERANCE:
        raise OptionError(f"{name} is {values!r}; expected numbers of at least 0 that add up to 1.")
    return array if abs(total - 1) <= len(array) * np.finfo(np.float64).eps else np.asarray(array / total)


def state_codes(variable: Variable, x: Any) -> NDArray[np.intp]:
    """Position of each value among the states (n,), -1 for a missing value; an unknown value is an error."""
    if isinstance(x, np.ndarray) and x.ndim == 1 and x.dtype.kind in "biufU":
        distinct, places = np.unique(x, return_inverse=True)
        return state_codes(variable, distinct.tolist())[places]
    values = [x] if isinstance(x, str | bytes) or not np.iterable(x) else x
    return np.array([-1 if is_missing(value) else variable.index(value) for value in values], dtype=np.intp)


def take_states(states: Sequence[Hashable], codes: NDArray[np.intp]) -> NDArray[Any]:
    """The states at some positions: an array of numbers or truth values where they are alike, else of objects."""
    labels = np.empty(len(states), dtype=object)
    labels[:] = states
    kinds = {type(state) for state in states}
    return labels[codes] if len(kinds) > 1 or kinds - {bool, int, float} else np.array(labels.tolist())[codes]


def only_variable(summary: Summary, title: str) -> Variable:
    """The variable of a summary of one column; a summary of several is an error."""
    names = summary.domain.names
    if len(names) != 1:
        raise MergeError(
            f"{title} describes one column and the summary has {len(names)}: {listing(names)}. "
            "Summarise the one column with suffice.summarize(distribution, data, columns=[name])."
        )
    return summary.domain.variables[0]


def never_in(statistics: str) -> MergeError:
    """The error for statistics that no rows have, as subtraction can leave them."""
    return MergeError(f"The summary has {statistics}, which no rows have: rows were taken out that were never in.")


def only_column(x: Any, title: str) -> Any:
    """Values of one column: of a table (a DataFrame, or a mapping of columns) its only one, else as they are."""
    if isinstance(x, Mapping) or hasattr(x, "columns"):
        return x[one_name(list(x if isinstance(x, Mapping) else x.columns), title)]
    return x


def one_name(columns: Sequence[Hashable], title: str) -> Hashable:
    """The name of the one column that a distribution of one variable reads."""
    if len(columns) != 1:
        raise OptionError(
            f"{title} describes one column and the data have {len(columns)}: "
            f"{', '.join(map(repr, columns[:8]))}. Name one by columns=[name]."
        )
    return columns[0]


#: Methods that evaluate a distribution: a result beyond the largest number is inf, which is what it rounds to.
_EVALUATING = frozenset(
    "log_prob prob cdf quantile sample mean variance covariance mode entropy intervals stationarity divergence "
    "sufficient_statistics expected_statistics statistics_covariance cumulants_along log_normalizer "
    "log_base_measure".split()
)


def overflow_to_inf(kind: type[object]) -> None:
    """Let every evaluation that a class defines overflow to inf without a warning."""
    for name, method in list(vars(kind).items()):
        if name in _EVALUATING:
            setattr(kind, name, np.errstate(over="ignore")(method))


class Distribution(SummaryEstimator):
    """A distribution that is unfitted (``Normal()``), given (``Normal(mean=0, variance=10)``) or fitted.

    Parameters are read with a trailing underscore (``mean_``) whether given or fitted. One that is always given has its
    formulas here; the formulas of one that is learned are those of its family, see `ExponentialFamily`.
    """

    #: Usual parameters, in the order of the constructor.
    parameter_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every evaluation overflow to inf without a warning."""
        super().__init_subclass__(**options)
        overflow_to_inf(cls)
        read_parameters(cls, cls.parameter_names)

    def __init__(self, **options: Any) -> None:
        """Keep the options; when every parameter is given, the distribution is ready for use."""
        super().__init__(**options)
        self._settle()

    def _settle(self) -> None:
        """Take over the parameters that the options give."""
        self._parameters = self._check({name: self._options[name] for name in self.parameter_names})

    def _check(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in their final type; an impossible value is an error."""
        return dict(parameters)

    @property
    def n_params_(self) -> int:
        """Number of free parameters; none of a distribution that is always given."""
        return 0

    @property
    def parameters_(self) -> dict[str, Any]:
        """The usual parameters by name."""
        return dict(self._parameters)

    def portrait(self) -> Portrait:
        """What there is to see of it: what pages, plots and notebooks show."""
        from suffice.families.portrait import portrait_of

        return portrait_of(self)

    @abstractmethod
    def log_prob(self, x: Any) -> Floats:
        """Log density or log probability of each value, natural logarithm; -inf outside the support."""

    @abstractmethod
    def sample(self, n: int = 1, random_state: Seed = None) -> Any:
        """`n` independent draws."""

    def score_samples(self, x: Any) -> Floats:
        """Log density or log probability of each row (n,); `score` is their mean.

        A table (a DataFrame, or a mapping of columns) of one column is read by that column.
        """
        return np.atleast_1d(self.log_prob(only_column(x, type(self).__name__)))

    def _task(self) -> SummaryTask[FamilyFitted]:
        raise OptionError(
            f"{type(self).__name__} is given by its parameters and is not fitted to rows. Use it as a prior."
        )

    def _fitted_from(self, plain: Mapping[str, Any]) -> FamilyFitted:
        raise OptionError(f"{type(self).__name__} is given by its parameters, and the file holds fitted ones.")
