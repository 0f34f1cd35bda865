"""Chain-structured conditional random fields: the labels of a sequence, given what is known about its steps."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self, Unpack

import numpy as np

from suffice.array_types import Floats
from suffice.choices import ChainExpectations, FieldSolver, Registered
from suffice.models.chain_crf.decoding import ChainDecoder
from suffice.models.chain_crf.fitted import ChainCRFFitted
from suffice.models.chain_crf.task import ChainCRFTask, check_options
from suffice.models.chain_crf.top_weights import StateWeight, TransitionWeight, top_features, top_transitions
from suffice.models.conditional_field.declaration import ConditionalField
from suffice.models.conditional_field.learning import STOCHASTIC, idle_unless
from suffice.options import Idle, RunOptions, own_options


class ChainCRF(ConditionalField):
    """A conditional random field on a chain: ``p(y | x) ~ exp(sum_t w[x_t, y_t] + sum_t v[y_{t-1}, y_t])``.

    The objective is the SUM of the log-likelihood over sequences, plus the log prior. X are sequences of steps: dicts
    of features, lists of names, arrays or sparse matrices (steps, features); y are the labels of each step of each
    sequence. Or X is a table of tokens, a row for each step, with `group=`, and y the name of its column of labels.

    Args:
        prior: on all weights: ``Normal(mean, variance)`` (CRFsuite's c2 is ``1 / (2 variance)``), ``Laplace(scale)``
            (its c1 is ``1 / scale``; many weights become exactly 0), or both in a tuple. None is maximum likelihood.
        solver: "auto" (L-BFGS, with a Laplace prior OWL-QN), "lbfgs", "owlqn", "newton" (few weights), "sgd", "adam" or
            "perceptron", the averaged structured perceptron, which has no objective and takes no prior.
        all_possible_states: a weight for every (feature, label) pair, not only for those seen together. None: every
            pair for arrays, those seen for named features.
        all_possible_transitions: the same for (label, label) pairs.
        boundaries: weights for first and last labels.
        bias: one more feature, which every step has.
        conditioned_transitions: weights for (feature, label, label): True for all features, or a list of features.
        constraints: what is impossible: "bio", "bioes", or pairs (from, to) with None for the outside.
        labels: the labels there are, in order; those seen, sorted, unless given.
        min_frequency: features at fewer steps than this are left out; columns of arrays count where they are not 0.
        hashing: number of columns that the names of features are spread over; no names are kept then.
        max_iter: most iterations; of a stochastic solver: passes over the sequences.
        tolerance: on the norm of the gradient divided by that of the weights (at least 1).
        step_size: of a stochastic solver: a number, a list, or a function of the number of the update.
        decay: exponent with which a constant `step_size` falls, from 0 to 1.
        batch_size: sequences of one update.
        average: whether a stochastic solver returns the mean of its updates.
        shuffle: whether the order of the sequences is drawn anew for each pass.
        expectations: of a stochastic gradient: "exact", "sampled" (independent paths) or "gibbs".
        n_samples: paths a sequence of sampled expectations, or chains of Gibbs sampling.
        n_sweeps: sweeps of Gibbs sampling in each update; chains begin at the labels given and go on from update to
            update.
        patience: iterations without a rise on a validation set after which the fit ends.
        warm_start: start from the weights of the last fit.
        random_state: seed of stochastic solvers.
        threads: None is one for each core.
        memory_limit: most bytes that the sequences of a table may take in memory, or a text such as "2GB"; half of what
            is free unless given. Beyond it they are kept in a scratch folder.
        checkpoint: file from which an interrupted fit goes on; for solvers that are not stochastic.
        run: see `RunOptions`.

    >>> from suffice import Normal
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}, {"word": "bark"}]]
    >>> model = ChainCRF(prior=Normal(variance=10.0)).fit(X, [["D", "N"], ["N", "V"]])
    >>> model.predict([[{"word": "the"}, {"word": "dog"}]])
    [['D', 'N']]
    """

    fitted_: ChainCRFFitted

    _idle = (
        *idle_unless(lambda given: given["solver"] in STOCHASTIC),
        Idle("n_samples", lambda given: given["expectations"] == "exact", "expectations= are exact"),
        Idle(
            "n_sweeps", lambda given: given["expectations"] != "gibbs", "expectations= are not those of Gibbs sampling"
        ),
    )

    def __init__(
        self,
        prior: Any = None,
        *,
        solver: FieldSolver | Registered = "auto",
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        boundaries: bool = False,
        bias: bool = False,
        conditioned_transitions: Any = False,
        constraints: Any = None,
        labels: Any = None,
        min_frequency: float = 0,
        hashing: int | None = None,
        max_iter: int = 1000,
        tolerance: float = 1e-5,
        step_size: Any = 0.1,
        decay: float = 0.0,
        batch_size: int = 1,
        average: bool = False,
        shuffle: bool = True,
        expectations: ChainExpectations = "exact",
        n_samples: int = 10,
        n_sweeps: int = 5,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = 0,
        threads: int | None = None,
        memory_limit: Any = None,
        **run: Unpack[RunOptions],
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        check_options(self._options)

    def _task(self) -> ChainCRFTask:
        return ChainCRFTask(self._options)

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        group: Hashable | None = None,
        order: Hashable | None = None,
        columns: Any = None,
        features: Hashable | None = None,
        validation: tuple[Any, Any] | None = None,
    ) -> Self:
        """Learn the weights from sequences, or from a table of tokens where it is.

        Args:
            X: sequences, or a table with a row for each step: a pandas, polars or Arrow table, Parquet or CSV files, a
                DuckDB relation, a Dask, Spark or Ray frame.
            y: the labels of each sequence; of a table, their column by name, or in memory the labels of its rows.
            sample_weight: how many sequences each sequence stands for (n,); of a table, the column that holds it. Those
                of weight 0 are left out.
            group: the column of a table that tells its sequences apart.
            order: the column by which the steps of each sequence are sorted; rows of a DuckDB, Dask, Spark or Ray
                table need it, since these come in no order of their own.
            columns: the columns of features, by default all others. Text gives the feature ``column:value``, a number
                or a truth value the feature ``column`` with that value; where text is missing, there is no feature.
            features: a column of lists of names of features, in place of `columns` or beside them.
            validation: sequences and labels (X, y), or a table and its column of labels; the fit ends when their
                log-likelihood no longer rises.

        Returns:
            self
        """
        form = {"group": group, "order": order, "columns": columns, "features": features}
        return self._learn(self._inputs(X, y, sample_weight, form, validation))

    # -- weights -----------------------------------------------------------------------------------------------------

    @property
    def feature_names_(self) -> tuple[Any, ...]:
        """The features, in the order of `state_weights_`: names, or numbers of columns."""
        return self.fitted_.structure.space.labels

    @property
    def state_weights_(self) -> Floats:
        """Weights (feature, label); 0 for pairs that have none."""
        state = self.fitted_
        return np.asarray(state.structure.packing.dense(state.structure.states(state.weights)))

    @property
    def transition_weights_(self) -> Floats:
        """Weights (label, label), from rows to columns; 0 for pairs that have none, -inf for impossible ones."""
        return np.asarray(self.fitted_.structure.transitions(self.fitted_.weights))

    @property
    def start_weights_(self) -> Floats:
        """Weights of first labels (label,): 0 without `boundaries`, -inf for impossible ones."""
        return np.asarray(self.fitted_.structure.end_weights(self.fitted_.weights)[0])

    @property
    def end_weights_(self) -> Floats:
        """Weights of last labels (label,)."""
        return np.asarray(self.fitted_.structure.end_weights(self.fitted_.weights)[1])

    @property
    def conditioned_transition_weights_(self) -> Floats:
        """Weights (feature, label, label) of the features in `conditioned_transitions`."""
        return np.asarray(self.fitted_.structure.conditioned_weights(self.fitted_.weights))

    def top_features(self, n: int = 20, *, label: Hashable = None, lowest: bool = False) -> list[StateWeight]:
        """The n largest (or lowest) state weights, of one label or of all: a table of feature, label and weight."""
        return top_features(self.fitted_, n, label=label, lowest=lowest)

    def top_transitions(self, n: int = 20, *, lowest: bool = False) -> list[TransitionWeight]:
        """The n largest (or lowest) transition weights: a table of before, after and weight."""
        return top_transitions(self.fitted_, n, lowest=lowest)

    # -- predictions -------------------------------------------------------------------------------------------------

    def predict_k_best(self, X: Iterable[Any], k: int = 5) -> list[list[tuple[list[Any], float]]]:
        """The k most probable paths of each sequence (or all there are) with their log-probabilities, best first."""
        return self._decoder().best_lists(X, k)

    def _decoder(self) -> ChainDecoder:
        return self.fitted_.decoder(self._options["threads"])

    @classmethod
    def _fitted_from(cls, plain: Mapping[str, Any]) -> ChainCRFFitted:
        return ChainCRFFitted.from_dict(plain)
