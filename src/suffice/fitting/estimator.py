"""The face of every model: scikit-learn's.

An estimator keeps its options, the last fit (a fitted value with its receipt), and nothing else. A fit that fails
changes nothing.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, update_wrapper
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from suffice.attributes import Read, computed, reads
from suffice.calls import missing_attribute
from suffice.checks import number
from suffice.errors import (
    FileFormatError,
    MissingAttributeError,
    NotFittedError,
    NotOfferedError,
    OptionError,
    SufficeError,
    listing,
)
from suffice.fitting import after_fit, outlets, sklearn_face
from suffice.fitting.samples import unused_target
from suffice.options import Parameterized
from suffice.records import copy_with

# A network that is read from a file and asked needs none of these, and starts in half the time without them.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from suffice.fitting.contract import Inputs, Judgement, Purpose
    from suffice.fitting.control import Control
    from suffice.fitting.fit import Fit
    from suffice.fitting.portrait import Portrait
    from suffice.fitting.report import MatchedStatistics, Report
    from suffice.fitting.summaries import SummaryData, SummaryTask
    from suffice.statistics import Summary
    from suffice.storage.files import FilePath

#: Results that a fit has under some condition, all quick to read: `dir` lists them where they are.
CONDITIONAL = frozenset(
    (
        "absorbing_states_ background_ classes_ couplings_ covars_ emission_probabilities_ fields_ "
        "interpolation_weight_ iterates_ log_evidence_ means_ n_expectations_ posterior_ predict_proba "
        "predictive_ prior_ residual_covariance_ scores_ size_ thresholds_ updates_"
    ).split()
)

P = ParamSpec("P")
R = TypeVar("R")


def delegated(method: Callable[Concatenate[Any, P], R], of: str = "fitted_") -> Callable[Concatenate[Any, P], R]:
    """The method of a model that asks its fitted value, with the signature and the words of that value's method.

    of: the attribute of the model that holds the value.
    """

    def ask(model: Estimator, /, *args: P.args, **options: P.kwargs) -> R:
        return method(getattr(model, of), *args, **options)

    return update_wrapper(ask, method)


def drawn(method: Callable[Concatenate[Any, P], Mapping[Hashable, NDArray[Any]]]) -> Callable[Concatenate[Any, P], Any]:
    """The method of a model that draws rows by its fitted value: a frame of the kind that was learned, else a dict."""

    def ask(model: Estimator, /, *args: P.args, **options: P.kwargs) -> Any:
        return as_frame(method(model.fitted_, *args, **options), None if model._fit is None else model._fit.frame)

    return update_wrapper(ask, method)


def frame_of(data: object) -> str | None:
    """The package of a frame in memory: "pandas", "polars" or "pyarrow"; None for anything else."""
    kind = type(data)
    package = kind.__module__.partition(".")[0]
    return package if (package, kind.__name__) in _FRAMES else None


def as_frame(columns: Mapping[Hashable, NDArray[Any]], package: str | None) -> Any:
    """Columns as a frame of a package; None: as they are."""
    if package is None:
        return columns
    module = importlib.import_module(package)
    # Labels of states are objects to NumPy: lists let the package find their type.
    plain = {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
    if package == "pandas":
        return module.DataFrame(plain)
    named = {str(name): values for name, values in plain.items()}
    return module.table(named) if package == "pyarrow" else module.DataFrame(named)


#: Frames in memory, of which draws come as another.
_FRAMES = {("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")}


def delegated_property(member: Any, of: str = "fitted_") -> Any:
    """The property of a model that reads one of its fitted value, or of another value that it has, with its words.

    member: the property, which may be a cached one; of: the attribute of the model that holds the value.
    """
    read = member.func if isinstance(member, cached_property) else member.fget
    return property(attrgetter(f"{of}.{read.__name__}"), doc=member.__doc__)


def _absent(model: Estimator) -> set[str]:
    """Which results that a fit has under some condition a model refuses."""
    absent = set()
    for name in CONDITIONAL & set(dir(type(model))):
        try:
            getattr(model, name)
        except (SufficeError, AttributeError):
            absent.add(name)
    return absent


def _fields(report: Report) -> dict[str, Any]:
    """The fields of a report, without the figures that follow from them: what files hold."""
    from dataclasses import asdict

    return asdict(report)


def _as_fitted(model: Estimator) -> Estimator:
    """The model with the options of its fit, where others were set since: those are for the next fit."""
    fitted = {} if model._fit is None else model._fit.options
    changed = {name: value for name, value in fitted.items() if model._options[name] is not value}
    return copy.copy(model).set_params(**changed) if changed else model


def _not_unlearned(model: Estimator, *_: Any, **__: Any) -> Any:
    """Take rows out again, for models that learn from sums; others refuse."""
    raise OptionError(
        f"A {type(model).__name__} has no finite statistics to take rows out of; fit it again without them."
    )


class Estimator(Parameterized):
    """Options in the constructor, data in `fit`, results in names that end in ``_``.

    Subclasses call ``super().__init__(**options)`` with every argument of their own constructor.
    """

    #: Options that are not written to files: they steer a run and are no part of the model.
    _transient: ClassVar[frozenset[str]] = frozenset({"callback", "progress", "checkpoint"})

    #: Why rows have no summary from which the model could learn, for models that have none.
    _without_summary: ClassVar[str] = "its fit goes over them again and again"
    _has_target: ClassVar[bool] = True  #: Whether `fit` makes use of y.
    _takes_matrices: ClassVar[bool] = False  #: Whether arrays are always rows of columns, as scikit-learn has them.

    #: Results that other models have, and where this one has them.
    _elsewhere: ClassVar[Mapping[str, str]] = {"covariance_": "parameter_covariance() is that of the estimates."}
    #: The last fit; None before the first.
    _fit: Fit[Any] | None = None
    n_features_in_: Read[int]  # `sklearn_face` gives these to every estimator.
    feature_names_in_: Read[NDArray[Any]]
    set_fit_request: Callable[..., Self]
    set_score_request: Callable[..., Self]

    # -- the last fit ------------------------------------------------------------------------------------------------

    def _adopt(self, fit: Fit[Any]) -> Self:
        """Take over a fit that is done."""
        self._fit = fit.made_with({n: value for n, value in self._options.items() if n not in self._transient})
        return self

    def _with_fit(self, fit: Fit[Any] | None) -> Self:
        """A copy with the same options and another fit; None for an unfitted one."""
        return copy_with(self, _fit=fit)

    @property
    def fitted_(self) -> Any:
        """What was learned: a frozen value."""
        if self._fit is None:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet. Call fit first.")
        return self._fit.fitted

    def _judgement(self) -> Judgement:
        """What was measured at the fitted value."""
        judged = None if self._fit is None else self._fit.judgement
        if judged is None:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet. Call fit first.")
        return judged

    def _bare_report(self) -> Report | None:
        """The report of the last fit; None before the first."""
        return None if self._fit is None else self._fit.report

    @property
    def report_(self) -> Report:
        """The receipt of the fit, whose page shows the model too."""
        held = self._bare_report()
        if held is None:
            raise NotFittedError(f"This {type(self).__name__} has no report_ yet. Call fit first.")
        # What the model keeps knows nothing of it, so that the two hold no cycle.
        return held.shown_with(self.portrait)

    @property
    def n_params_(self) -> int:
        """Number of free parameters."""
        return int(self.fitted_.n_params)

    def matched_statistics(self) -> MatchedStatistics | None:
        """The statistics that the fit makes equal, observed and expected; None where they are not kept."""
        matched = self._judgement().matched
        return None if matched is None else matched()

    log_likelihood_: Read[float] = computed(after_fit.log_likelihood)
    aic_: Read[float] = computed(after_fit.aic)
    bic_: Read[float | None] = computed(after_fit.bic)
    converged_: Read[bool] = reads("report_.converged", "Whether it reached its tolerance, and the certificate agrees.")
    n_iter_: Read[int] = reads("report_.iterations", "Number of iterations; 0 for a closed form.")
    stop_reason_: Read[str] = reads("report_.stop_reason", "Why the fit stopped.")

    history_: Read[tuple[float, ...]] = reads(
        "report_.history", "The objective before the first and after each iteration."
    )
    summary = after_fit.summary
    confidence_intervals = after_fit.confidence_intervals
    bootstrap = after_fit.bootstrap
    parameter_covariance = after_fit.parameter_covariance

    def portrait(self) -> Portrait:
        """What there is to see of it: pages, plots, notebooks and the command read nothing else.

        A model of one's own that draws none shows its receipt and what its fit makes equal.
        """
        from suffice.fitting.portrait import Portrait

        return Portrait(type(self).__name__, n_params=lambda: self.n_params_, matched=self.matched_statistics)

    unlearn = _not_unlearned

    _read_again: Callable[..., Any] = sklearn_face.read_again

    # -- options -------------------------------------------------------------------------------------------------------

    def _control(self) -> Control:
        from suffice.fitting.control import Control

        if self._refused is not None:
            raise self._refused
        return Control.of(self._options)

    if not TYPE_CHECKING:  # Checkers know options and results by their declarations, and misspelt ones by that.

        def __getattr__(self, name: str) -> Any:
            """Options read as attributes; a result read before `fit` says so."""
            if name in self._options:
                return self._options[name]
            member = inspect.getattr_static(type(self), name, None)
            if isinstance(member, property | sklearn_face.Offered):
                # Python asks here when a property raises an AttributeError, as NotFittedError is: let it speak itself.
                return member.__get__(self)
            if self._refused is not None:
                raise NotOfferedError(str(self._refused))
            if self._fit is not None and name in self._elsewhere:
                raise MissingAttributeError(f"A {type(self).__name__} has no {name}. {self._elsewhere[name]}")
            raise missing_attribute(self, name, self._options, is_fitted=self._fit is not None)

    def __dir__(self) -> list[str]:
        """What can be read: options, methods and, once there is a fit, its results, which end in ``_``."""
        fitted = self._fit is not None
        names = [n for n in super().__dir__() if fitted or n.startswith("_") or not n.endswith("_")]
        return sorted({*names, *self._options} - sklearn_face.unseen(self) - (_absent(self) if fitted else set()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the model, its graph and its receipt."""
        return outlets.card(repr(self), self.portrait(), self._bare_report())

    # -- files -------------------------------------------------------------------------------------------------------

    def write(self, path: FilePath) -> None:
        """Save the fit and its options to a file; the ending says the format and `suffice.read` loads it."""
        outlets.write(_as_fitted(self), path)

    def to_dict(self) -> dict[str, Any]:
        """Options, what was learned and the report as plain data."""
        options = {n: None if n in self._transient else self._options[n] for n in self._option_names()}
        state: dict[str, Any] = {"options": options, "fitted": None}
        report = self._bare_report()
        if report is not None:
            state |= {"fitted": self.fitted_.to_dict(), "report": _fields(report)}
        return state

    @classmethod
    def _with_options(cls, plain: Mapping[str, Any]) -> Self:
        """An unfitted model with the options of a file."""
        options = dict(plain["options"])
        known = cls._option_names()
        if set(options) - set(known):
            raise FileFormatError(f"{cls.__name__} has no option {listing(sorted(set(options) - set(known)))}.")
        return cls(**{name: value for name, value in options.items() if name not in cls._transient})


for _name, _member in sklearn_face.members():
    setattr(Estimator, _name, _member)


class ResponseEstimator(Estimator):
    """A model of a response, which learns from rows and, where they say all, from their statistics."""

    @abstractmethod
    def _summarized(self, given: Inputs) -> Summary | None:
        """The statistics of rows from which `fit` learns; None where it needs the rows."""


class StatesEstimator(Estimator):
    """A model of sequences with hidden states, which learns from their statistics where all states are known."""

    @abstractmethod
    def _summarized(self, given: Inputs) -> Summary:
        """The statistics of sequences and their states."""


class SummaryEstimator(Estimator):
    """What is learned comes from a `Summary` alone, so that rows can join it and leave it again."""

    _has_target: ClassVar[bool] = False

    @abstractmethod
    def _task(self) -> SummaryTask[Any]:
        """What the options declare."""

    def _adopt(self, fit: Fit[Any]) -> Self:
        if fit.data is not None:
            fit.task = self._task()
        return super()._adopt(fit)

    @property
    def statistics_(self) -> Summary:
        """The sufficient statistics of the rows that were learned."""
        return self._learned_data().statistics

    def _judgement(self) -> Judgement:
        """What was measured at the fitted value; of a model out of a file measured anew."""
        if self._fit is not None:
            self._fit.measured()
        return super()._judgement()

    def _learned_data(self) -> SummaryData:
        if self._fit is None or self._fit.data is None:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet. Call fit first.")
        data: SummaryData = self._fit.data
        return data

    def fit(self, data: object, y: object = None, *, sample_weight: object = None, columns: object = None) -> Self:
        """Learn the parameters from rows or from a `Summary`.

        Args:
            data: any table, file or array that the library reads, or a `Summary` made for this model.
            y: what scikit-learn hands to every model; it is not used here, and a warning says so.
            sample_weight: one weight a row, or the name of the column that holds it; a weight of 2 counts as two rows.
            columns: names for the columns of an array, or the columns to read.

        Returns:
            self
        """
        return self._learn(data, y, sample_weight=sample_weight, columns=columns)

    def _learn(self, data: object, y: object, **more: object) -> Self:
        from suffice.fitting.contract import Inputs

        self._refuse_idle()
        unused_target(self, y)
        rows, more = sklearn_face.rows_beside(self, data, more, known=False)
        with sklearn_face.named_causes(rows):
            solved = self._solve(self._task().read(Inputs(rows, more), None, "fit"), frame_of(data))
        return sklearn_face.remember(solved, rows)

    def partial_fit(
        self, data: object, y: object = None, *, sample_weight: object = None, columns: object = None, keep: float = 1.0
    ) -> Self:
        """Add rows to those already learned; the result equals one fit on all of them.

        `keep` below 1 weights the earlier rows down first (forgetting). `y` is as in `fit`.
        """
        return self._join(keep, data, y, sample_weight=sample_weight, columns=columns)

    def _join(self, keep: float, data: object, y: object, **more: object) -> Self:
        unused_target(self, y)
        keep = number(keep, "keep", 0.0)
        later = self._read("join", data, **more)
        earlier = None if self._fit is None else self._fit.data
        together = later if earlier is None else self._task().joined(earlier, later, keep)
        return sklearn_face.remember(self._solve(together, frame_of(data)), data)

    def unlearn(self, data: object, *, sample_weight: object = None, columns: object = None) -> Self:
        """Take rows out again; the result equals a fit that never saw them."""
        return self._leave(data, sample_weight=sample_weight, columns=columns)

    def _leave(self, data: object, **more: object) -> Self:
        if self._fit is None:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing to take rows out of. Call fit first.")
        leaving = self._read("join", data, **more)
        return self._solve(self._task().without(self._learned_data(), leaving), self._fit.frame)

    def score(self, data: object, y: object = None, *, sample_weight: object = None, columns: object = None) -> float:
        """Mean log-likelihood of a row (weighted), natural logarithm; `y` is as in `fit`."""
        unused_target(self, y)
        read = self._read("compare", data, sample_weight=sample_weight, columns=columns)
        if read.weight <= 0:
            raise OptionError("The score of no rows is undefined: the data have no weight. Give rows.")
        return float(read.log_likelihood(self.fitted_)) / read.weight

    def _read(self, purpose: Purpose, data: object, **more: object) -> SummaryData:
        """The statistics of rows that join those learned, leave them or are compared with them."""
        from suffice.fitting.contract import Inputs

        known = self._known() if purpose == "join" else self.fitted_
        data, more = sklearn_face.rows_beside(self, data, more, known=known is not None)
        learned_by = None if self._fit is None or purpose == "join" else self._fit.task
        more["earlier"] = None if self._fit is None else self._fit.data
        return (learned_by or self._task()).read(Inputs(data, more), known, purpose)

    def _known(self) -> Any:
        """The fitted value, or None before the first fit."""
        return None if self._fit is None else self._fit.fitted

    def _solve(self, data: SummaryData, frame: str | None = None) -> Self:
        from suffice.fitting.driver import closed_on_failure, solve

        task = self._task()
        with closed_on_failure(data):
            learned = task.condensed(data)
            fit = solve(task.problem(learned, None), learned, self._control())
        fit.data, fit.frame = task.kept(learned), frame
        return self._adopt(fit)

    # -- files -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Options, parameters, statistics and report as plain data; a value that was given has the first two alone."""
        plain = super().to_dict()
        if self._fit is not None:
            data, report = self._fit.data, self._fit.report
            plain["fitted"] = self.fitted_.to_dict()
            plain["summary"] = None if data is None else data.statistics
            plain["report"] = None if report is None else _fields(report)
        return plain

    @abstractmethod
    def _fitted_from(self, plain: Mapping[str, Any]) -> Any:
        """A fitted value out of a file, for these options."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls._with_options(plain)
        if plain["fitted"] is not None:
            from suffice.fitting.fit import Fit
            from suffice.fitting.report import Report
            from suffice.fitting.summaries import SummaryData
            from suffice.statistics import Summary

            summary, report = plain["summary"], plain["report"]
            if not (summary is None or isinstance(summary, Summary)):
                raise FileFormatError(f"The summary of the {cls.__name__} is a {type(summary).__name__}.")
            data = None if summary is None else SummaryData(summary)
            receipt = None if report is None else Report.from_dict(report)
            model._adopt(Fit(model._fitted_from(plain["fitted"]), receipt, data=data))
        return model
