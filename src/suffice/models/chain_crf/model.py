"""Chain-structured conditional random fields: the labels of a sequence, given what is known about its steps."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from suffice.domain import Domain, Variable
from suffice.engines.workers import worker_count
from suffice.errors import DataError, OptionError, listing
from suffice.families.base import generator
from suffice.fitting.control import fingerprint
from suffice.fitting.estimator import Estimator
from suffice.fitting.report import Certificate, Report
from suffice.models.chain_crf.certificate import certify
from suffice.models.chain_crf.existence import NO_MAXIMUM, UNDECIDED, Standing, path_standing, settled
from suffice.models.chain_crf.features import Sequences, listed_sequences, read_sequences
from suffice.models.chain_crf.labels import (
    check_labels,
    label_codes,
    label_key,
    listed_labels,
    read_labels,
    sequence_weights,
)
from suffice.models.chain_crf.objective import ChainObjective, make_objective
from suffice.models.chain_crf.priors import read_prior
from suffice.models.chain_crf.rank import bounded_rank, chain_rank
from suffice.models.chain_crf.reading import Reading, Trained
from suffice.models.chain_crf.stochastic import Plan, Stochastic
from suffice.models.chain_crf.structure import Structure, Wanted, check_paths, structure_of, transfer
from suffice.models.label_learning import SOLVERS, STOCHASTIC, Fit, chosen_solver, learn, measured
from suffice.models.label_rank import FeatureRank
from suffice.models.labelled import whole_number
from suffice.options import own_options
from suffice.statistics import Summary

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Read:
    """Labelled sequences that were read: the design, codes (steps,) and weights (n,)."""

    sequences: Sequences
    codes: Ints
    labels: tuple[Any, ...]
    weights: Floats
    structure: Structure


class ChainCRF(Reading, Estimator):  # type: ignore[misc]
    """A conditional random field on a chain: ``p(y | x) ~ exp(sum_t w[x_t, y_t] + sum_t v[y_{t-1}, y_t])``.

    The objective is the SUM of the log-likelihood over sequences, plus the log prior.

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
        n_samples: paths a sequence of sampled expectations.
        n_sweeps: sweeps of Gibbs sampling in each update; chains begin at the labels given and go on from update to
            update.
        patience: iterations without a rise on a validation set after which the fit ends.
        warm_start: start from the weights of the last fit.
        random_state: seed of stochastic solvers.
        threads: None is one for each core.
        max_seconds: most seconds.
        progress: show a bar.
        callback: called with the state after each iteration; True stops the fit.
        checkpoint: file from which an interrupted fit goes on; for solvers that are not stochastic.

    >>> from suffice import Normal
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "dogs"}, {"word": "bark"}]]
    >>> model = ChainCRF(prior=Normal(variance=10.0)).fit(X, [["D", "N"], ["N", "V"]])
    >>> model.predict([[{"word": "the"}, {"word": "dog"}]])
    [['D', 'N']]
    """

    def __init__(
        self,
        prior: Any = None,
        *,
        solver: str = "auto",
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
        expectations: str = "exact",
        n_samples: int = 10,
        n_sweeps: int = 5,
        patience: int = 5,
        warm_start: bool = False,
        random_state: Any = None,
        threads: int | None = None,
        max_seconds: float | None = None,
        progress: bool = False,
        callback: Any = None,
        checkpoint: Any = None,
    ) -> None:
        """See the class."""
        super().__init__(**own_options(locals()))
        self._check_options()

    def _check_options(self) -> None:
        options = self._options
        if options["solver"] not in SOLVERS:
            raise OptionError(f"solver is {options['solver']!r}; expected one of {listing(SOLVERS)}.")
        if options["solver"] == "perceptron" and options["prior"] is not None:
            raise OptionError("The perceptron has no objective that a prior could enter; give prior=None.")
        least = options["min_frequency"]
        if isinstance(least, bool) or not (
            isinstance(least, int | float | np.integer | np.floating) and 0 <= least < np.inf
        ):
            raise OptionError(f"min_frequency is {least!r}; expected a number of at least 0.")
        if options["hashing"] is not None:
            whole_number(options["hashing"], "hashing, the number of columns,")
        whole_number(options["patience"], "patience")
        worker_count(options["threads"])
        generator(options["random_state"])
        self._plan("sgd")

    # -- fitting -----------------------------------------------------------------------------------------------------

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, *, validation: tuple[Any, Any] | None = None
    ) -> Self:
        """Learn the weights.

        Args:
            X: sequences of steps: dicts of features, lists of names, arrays or sparse matrices (steps, features).
            y: the labels of each step of each sequence.
            sample_weight: how many sequences each sequence stands for (n,); those of weight 0 are left out.
            validation: sequences and labels (X, y); the fit ends when their log-likelihood no longer rises.

        Returns:
            self
        """
        read = self._read(X, y, sample_weight, None)
        earlier = self.__dict__.get("_trained") if self._options["warm_start"] else None
        start = np.zeros(read.structure.length)
        if earlier is not None:
            start = transfer(earlier.weights, earlier.structure, read.structure)
        solver = self._solver(read.structure)
        objective = self._objective_of(read)
        stochastic = self._stochastic(read, objective, solver) if solver in STOCHASTIC else None
        watch = None if validation is None else self._watch(validation, read.structure)
        patience, control = self._options["patience"], self._control()
        if control.checkpoint is not None and (stochastic is not None or watch is not None):
            raise OptionError(
                "checkpoint is for fits whose next step follows from the weights: not for solver='sgd', 'adam' or "
                "'perceptron', and not with a validation set."
            )
        problem = "" if control.checkpoint is None else self._fingerprint(read, objective, start)

        climb = None if stochastic is None else partial(stochastic.run, gap=partial(measured, objective))
        found = learn(
            objective, start, control, solver=solver, climb=climb, watch=watch, patience=patience, problem=problem
        )
        rank = chain_rank(objective.block, read.sequences)
        standing = None if solver == "perceptron" else UNDECIDED
        if self._options["prior"] is None and standing is not None:
            standing = path_standing(objective, read.sequences, read.codes, found.weights, rank)
        return self._accept(read, objective, found, rank, standing=standing)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Go through these sequences once, in their order, with steps of `step_size`: stochastic ascent.

        Features, pairs and labels that were not seen before enter with a weight of 0. The prior counts with one over
        the number of sequences of this call for each. The first call begins at zero. With solver="adam" or
        "perceptron" the updates are those, else plain ascent; moments and means go on from call to call. A sequence of
        weight w moves the weights w times as far.
        """
        earlier: Trained | None = self.__dict__.get("_trained")
        read = self._read(X, y, sample_weight, earlier)
        structure = read.structure
        start, walk = np.zeros(structure.length), {}
        if earlier is not None:
            start = transfer(earlier.weights, earlier.structure, structure)
            walk = {name: transfer(vector, earlier.structure, structure) for name, vector in earlier.walk.items()}
        objective = self._objective_of(read)
        solver = self._options["solver"] if self._options["solver"] in STOCHASTIC else "sgd"
        run = self._stochastic(read, objective, solver, online=True)
        after = run.epoch(run.memory_at(start, 0 if earlier is None else earlier.updates, walk))
        found = Fit.passed(after["mean"] if run.averaged else after["raw"], objective, solver)
        rank, updates = bounded_rank(structure), int(after["updates"])
        return self._accept(read, objective, found, rank, updates=updates, walk=run.going_on(after))

    def unlearn(self, data: Any, sample_weight: Any = None, *, columns: Any = None) -> Self:
        """Not offered: the sequences of an iterative fit cannot be taken out again."""
        raise OptionError("A ChainCRF has no finite statistics to take sequences out of; fit it again without them.")

    def _read(self, X: Any, y: Any, sample_weight: Any, earlier: Trained | None) -> _Read:
        options, before = self._options, None if earlier is None else earlier.structure

        def read(some: Any) -> Sequences:
            space = None if before is None else before.space
            return read_sequences(some, space=space, hashing=options["hashing"], bias=options["bias"], grow=True)

        listed = listed_sequences(X)
        sequences = read(listed)
        named = listed_labels(y, sequences.offsets)
        weights = sequence_weights(sample_weight, len(sequences))
        known = None if options["labels"] is None else check_labels(options["labels"])
        if not weights.all():  # Read first as they stand, so that an error names the place that the user knows.
            read_labels(named, sequences.offsets, known)
            kept = np.flatnonzero(weights).tolist()
            sequences, named, weights = read([listed[s] for s in kept]), [named[s] for s in kept], weights[kept]
        codes, labels = read_labels(named, sequences.offsets, known)
        if known is None and before is not None:
            old = label_codes(before.labels)
            labels = (*before.labels, *(label for label in labels if label_key(label) not in old))
            codes, _ = read_labels(named, sequences.offsets, labels)
        sequences, columns = self._frequent(sequences, weights) if before is None else (sequences, None)
        structure = structure_of(sequences, codes, labels, self._wishes(), before, columns=columns)
        return _Read(sequences.without_zeros(), codes, labels, weights, structure)

    def _frequent(self, sequences: Sequences, weights: Floats) -> tuple[Sequences, Mask | None]:
        """Without features that are at too few steps, and which columns have weights, where the columns stay."""
        least, space, design = self._options["min_frequency"], sequences.space, sequences.design
        if not least > 0:
            return sequences, None
        steps = np.repeat(weights, np.diff(sequences.offsets))[design.row_of_entry]
        if space.kind == "columns" and len(design.values):
            steps = steps * (design.values != 0.0)
        kept = np.bincount(design.indices, steps, minlength=space.width) >= least
        if space.bias:
            kept[-1] = True
        return (sequences.narrowed(kept), None) if space.kind == "named" else (sequences.entries_of(kept), kept)

    def _fingerprint(self, read: _Read, objective: ChainObjective, start: Floats) -> str:
        """What tells this fit from others: the data, the weights there are, the start and the options."""
        limits = {"max_iter", "max_seconds", "tolerance", "progress", "callback", "checkpoint", "threads"}
        options = {name: repr(value) for name, value in self._options.items() if name not in limits}
        design = read.sequences.design
        arrays = (design.indptr, design.indices, design.values, read.sequences.offsets, read.codes, read.weights)
        return fingerprint(options, list(arrays), objective.features, start, repr(read.labels))

    def _wishes(self) -> Wanted:
        options = self._options
        return Wanted(
            options["all_possible_states"],
            options["all_possible_transitions"],
            options["boundaries"],
            options["conditioned_transitions"],
            options["constraints"],
        )

    def _solver(self, structure: Structure) -> str:
        return chosen_solver(self._options["solver"], read_prior(self._options["prior"], structure.length))

    def _objective_of(self, read: _Read) -> ChainObjective:
        penalties = read_prior(self._options["prior"], read.structure.length)
        return make_objective(
            read.structure, read.sequences, read.codes, read.weights, penalties, threads=self._options["threads"]
        )

    def _plan(self, solver: str, *, online: bool = False) -> Plan:
        options = self._options
        return Plan(
            solver,
            options["step_size"],
            options["decay"],
            options["batch_size"],
            options["average"],
            options["shuffle"] and not online,
            options["expectations"],
            options["n_samples"],
            options["n_sweeps"],
            options["random_state"],
        )

    def _stochastic(self, read: _Read, objective: ChainObjective, solver: str, *, online: bool = False) -> Stochastic:
        """online: sequences in their order, each call for itself."""
        return Stochastic(
            read.structure,
            read.sequences,
            read.codes,
            read.weights,
            objective.penalties,
            self._plan(solver, online=online),
            unit=1.0 if online else None,
        )

    def _watch(self, validation: Any, structure: Structure) -> Any:
        """The mean log-likelihood of a validation set, as a function of the weights."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise OptionError("validation is a pair (X, y) of sequences and their labels.")
        try:
            sequences = read_sequences(validation[0], space=structure.space)
            codes, _ = read_labels(validation[1], sequences.offsets, structure.labels)
            check_paths(codes, sequences.offsets, structure.allowed, structure.ends, structure.labels)
        except DataError as error:
            raise type(error)(f"In the validation set: {error}") from None
        objective = make_objective(
            structure,
            sequences.without_zeros(),
            codes,
            np.ones(len(sequences)),
            read_prior(None, structure.length),
            threads=self._options["threads"],
        )
        return lambda weights: objective.log_likelihood(weights) / len(sequences)

    def _accept(
        self,
        read: _Read,
        objective: ChainObjective,
        found: Fit,
        rank: FeatureRank,
        *,
        updates: int = 0,
        walk: Mapping[str, Floats] | None = None,
        standing: Standing | None = None,
    ) -> Self:
        certificate, log_likelihood, value, relative, sums = certify(objective, found.weights, standing)
        fresh = copy.copy(self)
        fresh.__dict__.update({"_options": dict(self._options)})
        fresh.__dict__["_trained"] = Trained(read.structure, found.weights, relative, updates, walk or {})
        domain = Domain([Variable.discrete("label", read.labels)])
        steps = (read.codes, read.sequences.offsets, read.weights)
        fresh.__dict__["_sums"] = sums.with_shares(*steps, read.structure.size)
        fresh.summary_ = Summary(domain, {}, len(read.sequences), float(read.weights.sum()))
        receipt = fresh._receipt(read, found, certificate, rank, log_likelihood, value)
        fresh.report_ = settled(receipt, self._options["tolerance"], relative)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)
        return self

    def _receipt(
        self, read: _Read, found: Fit, certificate: Certificate, rank: FeatureRank, log_likelihood: float, value: float
    ) -> Report:
        outcome, structure = found.outcome, read.structure
        perceptron = found.method == "perceptron"
        estimate = "maximum likelihood" if self._options["prior"] is None else "posterior mode"
        separated = certificate.exists is False
        return Report(
            model=f"ChainCRF, {structure.size} labels, {structure.space.width:,} features",
            rows=len(read.sequences),
            weight=float(read.weights.sum()),
            passes=1,
            method=found.method,
            estimate="averaged perceptron" if perceptron else estimate,
            log_likelihood=log_likelihood,
            objective=value,
            n_params=rank.value,
            certificate=certificate,
            converged=outcome.converged and not perceptron,
            iterations=outcome.state.iteration,
            history=outcome.history,
            stop_reason=outcome.stop_reason,
            plan=f"forward-backward over {len(read.codes):,} steps",
            warnings=(*((NO_MAXIMUM,) if separated else ()), *rank.notes()),
        )

    # -- state -------------------------------------------------------------------------------------------------------

    @property
    def n_params_(self) -> int:
        """The number of weights that the sequences tell apart, or a bound of it, as the report says."""
        return self.report_.n_params

    def _fitted_state(self) -> dict[str, Any]:
        return {**self._state.to_plain(), **self._plain_sums()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.__dict__["_trained"] = Trained.from_plain(state)
        self._restore_sums(state)
