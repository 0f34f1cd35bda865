"""What fitted models of labels have in common: how they learn, the labels, the weights, answers, how good these are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack, overload

import numpy as np

from suffice.array_types import Floats
from suffice.errors import OptionError
from suffice.families.base import generator
from suffice.fitting.contract import Inputs, Judgement
from suffice.fitting.driver import Fit, closed_on_failure, run, solve
from suffice.fitting.estimator import Estimator
from suffice.fitting.report import MatchedStatistics, Report
from suffice.fitting.row_marks import MarkedRows
from suffice.fitting.sklearn_face import role_of_sequences
from suffice.models.conditional_field import estimates as told
from suffice.models.conditional_field.certificate import marks_of_features
from suffice.models.conditional_field.decoding import FieldDecoder
from suffice.models.conditional_field.evaluation import Evaluation
from suffice.models.conditional_field.fitted import FieldFitted
from suffice.models.conditional_field.labels import sequence_weights
from suffice.models.conditional_field.matched import FeatureTotals
from suffice.models.conditional_field.tables import TableColumns, in_the_kind_of
from suffice.models.conditional_field.task import FieldTask

if TYPE_CHECKING:
    from suffice.fitting.portrait import Portrait
    from suffice.models.conditional_field.marginals import Marginals


#: What a reader of the estimates has to know.
_ONLY_MAP = (
    "The weights are the MAP. Maximum likelihood needs a fit of its own, with prior=None, and may not exist; how far "
    "the prior moves each feature is drawn above."
)


class ConditionalField(Estimator):
    """A conditional random field: p(labels | what is known) with weights that are learned."""

    _role = role_of_sequences
    _elsewhere: ClassVar[Mapping[str, str]] = {"standard_errors_": told.AGAIN, "covariance_": told.AGAIN}

    @abstractmethod
    def _task(self) -> FieldTask[Any, Any, Any, Any]:
        """What the options declare."""

    @abstractmethod
    def _decoder(self) -> FieldDecoder[Any]:
        """The fitted value, asked with the options of this model."""

    # -- fitting -----------------------------------------------------------------------------------------------------

    def _inputs(self, X: Any, y: Any, sample_weight: Any, columns: Mapping[str, Any], validation: Any = None) -> Inputs:
        """What is given to a fit, with the form of a table where X is one."""
        form = self._task().form.reading(X, columns)
        return Inputs(X, {"y": y, "sample_weight": sample_weight, "validation": validation, "form": form})

    def _learn(self, given: Inputs) -> Self:
        if given["form"] is None and self._options["memory_limit"] is not None:
            raise OptionError(
                f"memory_limit is for tables; {self._task().words[0]}s in lists are in memory already. Leave it out."
            )
        self._refuse_idle(validation=given["validation"])
        earlier = self._fit if self._options["warm_start"] else None
        return self._adopt(run(self._task(), given, self._control(), start=None if earlier is None else earlier.fitted))

    def _read_again(self, rows: Mapping[str, Any]) -> MarkedRows:
        """The examples under the names of the fit, with the sums of their features."""
        task, more = self._task(), dict(rows)
        given = self._inputs(more.pop("data"), more.pop("y", None), more.pop("sample_weight", None), more)
        data = task.read(given, self.fitted_, "join")
        with closed_on_failure(data):
            objective = task.objective(data)
            known = objective.structure.length == len(self.fitted_.weights)
            return MarkedRows(data.weight, marks_of_features(objective) if known else {})

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, **columns: Unpack[TableColumns]) -> Self:
        """Go through these examples once, in their order, with steps of `step_size`: stochastic ascent.

        The prior counts with one over the number of examples of this call for each. The first call begins at zero. With
        solver="adam" or "perceptron" the updates are those, else plain ascent; moments and means go on from call to
        call. An example of weight w moves the weights w times as far. Features, pairs and labels of sequences that were
        not seen before enter with a weight of 0; those of graphs are settled by the first call, unless `labels` says
        them. Of a table whose rows are elsewhere the order is that of its shards: each goes through its own examples.
        """
        known, task = None if self._fit is None else self._fit.fitted, self._task()
        data = task.read(self._inputs(X, y, sample_weight, columns), known, "join")
        with closed_on_failure(data):
            return self._adopt(solve(task.one_pass(data, known), data, replace(self._control(), checkpoint=None)))

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def labels_(self) -> tuple[Any, ...]:
        """The labels, in the order of the weights."""
        return tuple(self.fitted_.structure.labels)

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
        return list(self.fitted_.structure.names())

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

    standard_errors_of = told.standard_errors_of

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
            inference=partial(told.inference_of, self),
            inference_with=partial(told.inference_with, self),
            redraw=partial(told.redrawn, self),
        )

    # -- predictions -------------------------------------------------------------------------------------------------

    def _table(self, X: Any, columns: Mapping[str, Any], y: Any = None, sample_weight: Any = None) -> Any:
        """The table that X is; None where it is none."""
        task = self._task()
        form = task.form.reading(X, columns)
        return None if form is None else task.table(X, form, y, sample_weight)

    @overload
    def predict(self, X: Iterable[Any]) -> list[list[Any]]: ...

    @overload
    def predict(self, X: Any, **columns: Unpack[TableColumns]) -> Any: ...

    def predict(self, X: Any, **columns: Unpack[TableColumns]) -> Any:
        """The most probable labels of each example: of sequences by Viterbi; of a table, the label of each row.

        Of graphs too wide for exact inference those of the highest score that loopy belief propagation and annealing
        find. Labels of a table are in the order of its rows and of its kind: a Series of pandas or polars, an Arrow
        array; an array for files and queries; a frame that is not computed yet for Dask, Spark and Ray. The keywords
        are those of `fit`; without `columns` a chain reads those that it has features of.
        """
        decoder, table = self._decoder(), self._table(X, columns)
        return decoder.predict(X) if table is None else in_the_kind_of(X, table.mapped(decoder, marginals=False))

    @overload
    def predict_marginals(self, X: Iterable[Any]) -> list[Marginals]: ...

    @overload
    def predict_marginals(self, X: Any, **columns: Unpack[TableColumns]) -> Any: ...

    def predict_marginals(self, X: Any, **columns: Unpack[TableColumns]) -> Any:
        """The probability of every label at every step or node, given the whole example: an array (steps, label) each.

        Rows are read by number or by label: ``marginals[0][2]["B-NP"]``. Those of Gibbs sampling (`inference="gibbs"`,
        graphs too wide) have `standard_errors` (nodes, label), an `effective_sample_size` and an `r_hat`; a warning
        says where their chains do not mix. Of a table a column for each label, in its kind, as in `predict`.
        """
        decoder, table = self._decoder(), self._table(X, columns)
        if table is None:
            return decoder.predict_marginals(X)
        return in_the_kind_of(X, table.mapped(decoder, marginals=True))

    def sample_labels(self, X: Iterable[Any], n: int = 1, *, random_state: Any = None) -> list[list[list[Any]]]:
        """For each example n draws of its labels from p(labels | example)."""
        return self._decoder().sample_labels(X, n, generator(random_state))

    # -- how good ----------------------------------------------------------------------------------------------------

    def score_samples(self, X: Any, y: Any = None, **columns: Unpack[TableColumns]) -> Floats:
        """Log p(labels | example) of each example (n,), natural logarithm.

        Those of a table come in the order of their first rows, with `order` or `node` in that of their names.
        """
        decoder, table = self._decoder(), self._table(X, columns, y)
        scores: Floats = decoder.score_samples(X, y) if table is None else table.scores(decoder)
        return scores

    def evaluate(self, X: Any, y: Any = None, **columns: Unpack[TableColumns]) -> Evaluation:
        """The share of labels predicted right, precision, recall and F1 of each label and, for chunk labels, of chunks.

        Labels that the fit has not seen count as missed. Of a table only these counts travel.
        """
        decoder, table = self._decoder(), self._table(X, columns, y)
        rates: Evaluation = decoder.evaluate(X, y) if table is None else table.evaluated(decoder)
        return rates

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **columns: Unpack[TableColumns]) -> float:
        """Mean log-likelihood of an example (weighted), natural logarithm; `accuracy` counts labels instead."""
        decoder, table = self._decoder(), self._table(X, columns, y, sample_weight)
        if table is not None:
            return float(table.score(decoder))
        logs = decoder.score_samples(X, y)
        return float(np.average(logs, weights=sequence_weights(sample_weight, len(logs), words=decoder.words)))

    def accuracy(self, X: Any, y: Any = None, **columns: Unpack[TableColumns]) -> float:
        """The share of labels that are predicted right."""
        return self.evaluate(X, y, **columns).accuracy

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
