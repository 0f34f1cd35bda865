"""The face of every model: scikit-learn's.

An estimator keeps its options, the last fit (a fitted value with its receipt), and nothing else. A fit that fails
changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from suffice.errors import FileFormatError, NotFittedError, OptionError, listing
from suffice.fitting import outlets
from suffice.options import Optioned

# A network that is read from a file and asked needs none of these, and starts in half the time without them.
if TYPE_CHECKING:
    from suffice.fitting.control import Control
    from suffice.fitting.driver import Fit
    from suffice.fitting.portrait import Portrait
    from suffice.fitting.report import MatchedStatistics, Report


class Estimator(Optioned):
    """Options in the constructor, data in `fit`, results in names that end in ``_``.

    Subclasses call ``super().__init__(**options)`` with every argument of their own constructor.
    """

    #: Options that are not written to files: they steer a run and are no part of the model.
    _transient: ClassVar[frozenset[str]] = frozenset({"callback", "progress", "checkpoint"})

    # -- the last fit ------------------------------------------------------------------------------------------------

    def _adopt(self, fit: Fit[Any]) -> Self:
        """Take over a fit that is done."""
        self.__dict__["_fit"] = fit
        return self

    @property
    def fitted_(self) -> Any:
        """What was learned: a frozen value."""
        fit: Fit[Any] | None = self.__dict__.get("_fit")
        if fit is None:
            raise NotFittedError(f"This {type(self).__name__} has learned nothing yet. Call fit first.")
        return fit.fitted

    def _bare_report(self) -> Report | None:
        """The report of the last fit; None before the first."""
        fit: Fit[Any] | None = self.__dict__.get("_fit")
        return None if fit is None else fit.report

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
        self.fitted_  # noqa: B018  Says that nothing was learned, where that is so.
        matched: MatchedStatistics | None = self._fit.judgement.matched
        return matched

    def portrait(self) -> Portrait:
        """What there is to see of it: pages, plots, notebooks and the command read nothing else.

        A model of one's own that draws none shows its receipt and what its fit makes equal.
        """
        from suffice.fitting.portrait import Portrait

        return Portrait(type(self).__name__, n_params=lambda: self.n_params_, matched=self.matched_statistics)

    @property
    def converged_(self) -> bool:
        """Whether the fit reached its tolerance, and the certificate agrees."""
        return self.report_.converged

    @property
    def n_iter_(self) -> int:
        """Number of iterations; 0 for a closed form."""
        return self.report_.iterations

    @property
    def history_(self) -> tuple[float, ...]:
        """The objective before the first and after each iteration."""
        return self.report_.history

    @property
    def stop_reason_(self) -> str:
        """Why the fit stopped."""
        return self.report_.stop_reason

    def unlearn(self, *_: Any, **__: Any) -> Self:
        """Take rows out again, for models that learn from sums; others refuse."""
        raise OptionError(
            f"A {type(self).__name__} has no finite statistics to take rows out of; fit it again without them."
        )

    # -- options -------------------------------------------------------------------------------------------------------

    def _before_options_change(self) -> None:
        if self._bare_report() is not None:  # The receipt of the fit under the options that it had.
            self.report_  # noqa: B018

    def _control(self) -> Control:
        from suffice.fitting.control import Control

        names = ("max_iter", "tolerance", "max_seconds", "progress", "callback", "checkpoint")
        return Control(**{name: self._options[name] for name in names if name in self._options})

    def __getattr__(self, name: str) -> Any:
        """Options read as attributes; a result read before `fit` says so."""
        options = self.__dict__.get("_options", {})
        if name in options:
            return options[name]
        found = getattr(type(self), name, None)
        if isinstance(found, property) and found.fget is not None:
            # Python asks here when a property raises an AttributeError, as NotFittedError is: let it speak for itself.
            return found.fget(self)
        if name.endswith("_") and not name.startswith("_"):
            raise NotFittedError(f"This {type(self).__name__} has no {name} yet. Call fit first, or check the name.")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.")

    def __sklearn_tags__(self) -> Any:
        """Let scikit-learn's searches take the model; called by scikit-learn only."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())

    def _repr_html_(self) -> str:
        """What a notebook shows: the model, its graph and its receipt."""
        held = self._bare_report()
        return outlets.card(repr(self), self.portrait(), held)

    # -- files -------------------------------------------------------------------------------------------------------

    def write(self, path: Any) -> None:
        """Save to a file; the ending says the format and `suffice.read` loads it."""
        outlets.write(self, path)

    def to_plain(self) -> dict[str, Any]:
        """Options, what was learned and the report as plain data."""
        options = {n: None if n in self._transient else self._options[n] for n in self._option_names()}
        state: dict[str, Any] = {"options": options, "fitted": None}
        if "_fit" in self.__dict__:
            state |= {"fitted": self.fitted_.to_dict(), "report": self.report_.to_plain()}
        return state

    @classmethod
    def _with_options(cls, plain: Mapping[str, Any]) -> Self:
        """An unfitted model with the options of a file."""
        options = dict(plain["options"])
        known = cls._option_names()
        if set(options) - set(known):
            raise FileFormatError(f"{cls.__name__} has no option {listing(sorted(set(options) - set(known)))}.")
        return cls(**{name: value for name, value in options.items() if name not in cls._transient})
