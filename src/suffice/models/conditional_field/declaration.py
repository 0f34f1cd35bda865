"""What fitted models of labels have in common: how they learn, the labels, the weights, answers, how good these are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from suffice.array_types import Floats
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Judgement
from suffice.fitting.driver import Fit, run, solve
from suffice.fitting.estimator import Estimator
from suffice.fitting.report import MatchedStatistics, Report
from suffice.fitting.sklearn_face import role_of_sequences
from suffice.models.conditional_field.decoding import FieldDecoder
from suffice.models.conditional_field.evaluation import Evaluation
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.labels import sequence_weights
from suffice.models.conditional_field.marginals import Marginals
from suffice.models.conditional_field.matched import FeatureTotals
from suffice.models.conditional_field.task import FieldTask

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait


#: What a reader of the estimates has to know.
_ONLY_MAP = (
    "The weights are the MAP. Maximum likelihood needs a fit of its own, with prior=None, and may not exist; how far "
    "the prior moves each feature is drawn above."
)


class ConditionalField(Estimator):
    """A conditional random field: p(labels | what is known) with weights that are learned."""

    _role = role_of_sequences

    @abstractmethod
    def _task(self) -> FieldTask[Any, Any, Any, Any]:
        """What the options declare."""

    @abstractmethod
    def _decoder(self) -> FieldDecoder[Any]:
        """The fitted value, asked with the options of this model."""

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        validation: tuple[Any, Any] | None = None,
    ) -> Self:
        """Learn the weights.

        Args:
            X: the examples, in one of the forms that the class names.
            y: the labels of each example, as the class says.
            sample_weight: how many examples each example stands for (n,); those of weight 0 are left out.
            validation: examples and labels (X, y); the fit ends when their log-likelihood no longer rises.

        Returns:
            self
        """
        return self._fitted_to(Inputs(X, {"y": y, "sample_weight": sample_weight, "validation": validation}))

    def _fitted_to(self, given: Inputs) -> Self:
        self._refuse_idle(validation=given["validation"])
        earlier = self._fit if self._options["warm_start"] else None
        return self._adopt(run(self._task(), given, self._control(), start=None if earlier is None else earlier.fitted))

    def partial_fit(
        self, X: Iterable[Any], y: Iterable[Any] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go through these examples once, in their order, with steps of `step_size`: stochastic ascent.

        The prior counts with one over the number of examples of this call for each. The first call begins at zero. With
        solver="adam" or "perceptron" the updates are those, else plain ascent; moments and means go on from call to
        call. An example of weight w moves the weights w times as far. Features, pairs and labels of sequences that were
        not seen before enter with a weight of 0; those of graphs are settled by the first call, unless `labels` says
        them.
        """
        known, task = None if self._fit is None else self._fit.fitted, self._task()
        data = task.read(Inputs(X, {"y": y, "sample_weight": sample_weight}), known, "join")
        return self._adopt(solve(task.one_pass(data, known), data, replace(self._control(), checkpoint=None)))

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def labels_(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights."""
        fitted: FieldFitted[Any] = self.fitted_
        return tuple(fitted.structure.labels)

    @property
    def classes_(self) -> list[Any]:
        """The labels, as scikit-learn calls them."""
        return list(self.labels_)

    @property
    def weights_(self) -> Floats:
        """All weights (k,), in the order of `weight_names_`."""
        return np.array(self.fitted_.weights)

    @property
    def weight_names_(self) -> list[tuple[Any, ...]]:
        """The name of each weight.

        Of a chain ("state", feature, label), ("transition", from, to), ("start", label) and so on; of graphs
        ("nodes", label, feature), ("edges", label, label, feature) and so on.
        """
        fitted: FieldFitted[Any] = self.fitted_
        return list(fitted.structure.names())

    @property
    def gradient_norm_(self) -> float:
        """The norm of the objective's slope at the result, divided by that of the weights (at least 1)."""
        return float(self._judgement().slope or 0.0)

    def matched_statistics(self) -> MatchedStatistics | None:
        """Sums of features, a mean over the examples, of the labels given and as expected under the fit."""
        totals: FeatureTotals = self._judgement().kept
        report = self.report_
        about = "Mean sums of the features over the labels given, and as the fit expects them given what is known."
        if not report.certificate.exact:
            about += f" Where graphs are too wide, the slope is that of another objective: {report.certificate.engine}."
        return totals.matched(self.fitted_.structure.names, max(report.weight, 1e-300), about)

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
        drawn: Portrait = self.fitted_.portrait()
        return replace(
            drawn,
            variables=lambda: given,
            matched=self.matched_statistics,
            estimates=lambda level, node: Estimates(note=note),
        )

    # -- predictions -------------------------------------------------------------------------------------------------

    def predict(self, X: Iterable[Any]) -> list[list[Any]]:
        """The most probable labels of each example: of sequences by Viterbi.

        Of graphs too wide for exact inference those of the highest score that loopy belief propagation and annealing
        find.
        """
        return self._decoder().predict(X)

    def predict_marginals(self, X: Iterable[Any]) -> list[Marginals]:
        """The probability of every label at every step or node, given the whole example: an array (steps, label) each.

        Rows are read by number or by label: ``marginals[0][2]["B-NP"]``. Those of Gibbs sampling (`inference="gibbs"`,
        graphs too wide) have `standard_errors` (nodes, label), an `effective_sample_size` and an `r_hat`; a warning
        says where their chains do not mix.
        """
        return self._decoder().predict_marginals(X)

    def sample_labels(self, X: Iterable[Any], n: int = 1, *, random_state: Any = None) -> list[list[list[Any]]]:
        """For each example n draws of its labels from p(labels | example)."""
        return self._decoder().sample_labels(X, n, generator(random_state))

    # -- how good ----------------------------------------------------------------------------------------------------

    def score_samples(self, X: Iterable[Any], y: Iterable[Any] | None = None) -> Floats:
        """Log p(labels | example) of each example (n,), natural logarithm."""
        return self._decoder().score_samples(X, y)

    def evaluate(self, X: Iterable[Any], y: Iterable[Any] | None = None) -> Evaluation:
        """The share of labels predicted right, precision, recall and F1 of each label and, for chunk labels, of chunks.

        Labels that the fit has not seen count as missed.
        """
        return self._decoder().evaluate(X, y)

    def score(self, X: Iterable[Any], y: Iterable[Any] | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of an example (weighted), natural logarithm; `accuracy` counts labels instead."""
        decoder = self._decoder()
        logs = decoder.score_samples(X, y)
        return float(np.average(logs, weights=sequence_weights(sample_weight, len(logs), words=decoder.words)))

    def accuracy(self, X: Iterable[Any], y: Iterable[Any] | None = None) -> float:
        """The share of labels that are predicted right."""
        return self.evaluate(X, y).accuracy

    # -- files -------------------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def _fitted_from(cls, plain: Mapping[str, Any]) -> FieldFitted[Any]:
        """A fitted value out of a file."""

    def to_dict(self) -> dict[str, Any]:
        """Options, what was learned, what was measured at it, and the report as plain data."""
        plain = super().to_dict()
        if plain["fitted"] is not None:
            judged = self._judgement()
            plain["measured"] = {"slope": judged.slope, "totals": judged.kept.to_dict()}
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Rebuild from plain data."""
        model = cls._with_options(plain)
        if plain["fitted"] is not None:
            fitted, report = cls._fitted_from(plain["fitted"]), Report.from_dict(plain["report"])
            totals = FeatureTotals.from_dict(plain["measured"]["totals"], len(fitted.weights))
            slope = float(plain["measured"]["slope"])
            judged = Judgement(report.log_likelihood, report.objective, report.certificate, slope=slope, kept=totals)
            model._adopt(Fit(fitted, report, judged))
        return model
