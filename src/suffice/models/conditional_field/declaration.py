"""What fitted models of labels have in common: how they learn, the labels, the weights, how good predictions are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from suffice.fitting.contract import Inputs, Judgement
from suffice.fitting.driver import Fit, run, solve
from suffice.fitting.estimator import Estimator
from suffice.fitting.report import MatchedStatistics, Report
from suffice.models.conditional_field.evaluation import Evaluation
from suffice.models.conditional_field.labels import SEQUENCES, Words, sequence_weights
from suffice.models.conditional_field.matched import FeatureTotals
from suffice.models.conditional_field.task import FieldTask

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait

Floats = NDArray[np.float64]

#: What a reader of the estimates has to know.
_ONLY_MAP = (
    "The weights are the MAP. Maximum likelihood needs a fit of its own, with prior=None, and may not exist; how far "
    "the prior moves each feature is drawn above."
)


class ConditionalField(Estimator):
    """A conditional random field: p(labels | what is known) with weights that are learned."""

    #: What messages call the things that have labels, and the places of their labels.
    _words: ClassVar[Words] = SEQUENCES

    @abstractmethod
    def _task(self) -> FieldTask[Any]:
        """What the options declare."""

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _learn(self, X: Any, y: Any, sample_weight: Any, validation: Any) -> Self:
        earlier = self._fit if self._options["warm_start"] else None
        given = Inputs(X, {"y": y, "sample_weight": sample_weight, "validation": validation})
        return self._adopt(run(self._task(), given, self._control(), start=None if earlier is None else earlier.fitted))

    def _go_on(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """One pass of stochastic ascent from where the last fit stands."""
        known = None if self._fit is None else self._fit.fitted
        task = self._task()
        data = task.read(Inputs(X, {"y": y, "sample_weight": sample_weight}), known, "join")
        return self._adopt(solve(task.one_pass(data, known), data, replace(self._control(), checkpoint=None)))

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def labels_(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights."""
        found: tuple[Any, ...] = self.fitted_.structure.labels
        return found

    @property
    def classes_(self) -> list[Any]:
        """The labels, as scikit-learn calls them."""
        return list(self.labels_)

    @property
    def weights_(self) -> Floats:
        """All weights (k,), in the order of `weight_names_`."""
        return np.array(self.fitted_.weights)

    @property
    def gradient_norm_(self) -> float:
        """The norm of the objective's slope at the result, divided by that of the weights (at least 1)."""
        return float(self._judgement().slope or 0.0)

    def matched_statistics(self) -> MatchedStatistics | None:
        """Sums of features, a mean over the examples, of the labels given and as expected under the fit."""
        totals: FeatureTotals = self._judgement().kept
        report = self.report_
        said = "Mean sums of the features over the labels given, and as the fit expects them given what is known."
        if not report.certificate.exact:
            said += f" Where graphs are too wide, the slope is that of another objective: {report.certificate.engine}."
        return totals.matched(self.fitted_.structure.names, max(report.weight, 1e-300), said)

    @property
    def label_shares_(self) -> Floats | None:
        """The share of each label among those that the model was fitted to (K,)."""
        totals: FeatureTotals = self._judgement().kept
        return totals.shares

    def portrait(self) -> Portrait:
        """What there is to see of it: the weights, and what the fit makes equal."""
        from suffice.fitting.portrait import Estimates, VariableDistribution

        if self._fit is None:
            return super().portrait()
        shares, labels = self.label_shares_, self.labels_
        given = [] if shares is None else [VariableDistribution("labels given", labels, tuple(shares.tolist()))]
        note = "" if self._options["prior"] is None else _ONLY_MAP
        return replace(
            self.fitted_.portrait(),
            variables=lambda: given,
            matched=self.matched_statistics,
            estimates=lambda level, node: Estimates(note=note),
        )

    # -- how good ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def score_samples(self, X: Any, y: Any) -> Floats:
        """Log p(labels | what is known) of each example (n,), natural logarithm."""

    @abstractmethod
    def evaluate(self, X: Any, y: Any) -> Evaluation:
        """Precision, recall and F1 of each label. Labels that the fit has not seen count as missed."""

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The sum over examples of log p(labels | what is known), natural logarithm."""
        found = self.score_samples(X, y)
        return float(sequence_weights(sample_weight, len(found), words=self._words) @ found)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean log-likelihood of an example (weighted), natural logarithm; `accuracy` counts labels instead."""
        found = self.score_samples(X, y)
        return float(np.average(found, weights=sequence_weights(sample_weight, len(found), words=self._words)))

    def accuracy(self, X: Any, y: Any) -> float:
        """The share of labels that are predicted right."""
        return self.evaluate(X, y).accuracy

    # -- files -------------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def _fitted_from(cls, plain: Mapping[str, Any]) -> Any:
        """A fitted value out of a file."""

    def to_plain(self) -> dict[str, Any]:
        """Options, what was learned, what was measured at it, and the report as plain data."""
        found = super().to_plain()
        if found["fitted"] is not None:
            judged = self._judgement()
            found["measured"] = {"slope": judged.slope, "totals": judged.kept.to_plain()}
        return found

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls._with_options(plain)
        if plain["fitted"] is not None:
            fitted, report = cls._fitted_from(plain["fitted"]), Report.from_plain(plain["report"])
            totals = FeatureTotals.from_plain(plain["measured"]["totals"], len(fitted.weights))
            slope = float(plain["measured"]["slope"])
            judged = Judgement(report.log_likelihood, report.objective, report.certificate, slope=slope, kept=totals)
            model._adopt(Fit(fitted, report, judged))
        return model
