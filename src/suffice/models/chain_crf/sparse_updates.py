"""Updates of stochastic ascent and of the perceptron that touch the weights of the features at hand alone.

The weights of (feature, label) pairs are ``w = s v``: a Gaussian prior of mean 0 multiplies s, and a gradient g of
step e adds ``(e / s) g`` to v. With d_t what update t adds to v, s_t the scale after it and ``S_t = s_1 + ... + s_t``,
``w_1 + ... + w_T = S_T v_T - sum_t S_{t-1} d_t``: the mean of all updates needs the features at hand alone as well. The
few other weights are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.array_types import Floats, Ints
from suffice.engines.label_scores import SequenceSteps
from suffice.models.chain_crf.blocks import EVALUATIONS
from suffice.models.chain_crf.layout import ChainLayout
from suffice.models.chain_crf.rounds import FeatureSequences
from suffice.models.conditional_field.priors import WeightPenalties

Dense = Callable[[dict[str, Any], Ints], None]

#: The scale is multiplied out when it falls below this: sums of terms divided by it lose as many digits.
SMALLEST = 0.1


class Residuals:
    """Observed less expected features of some sequences, by step and label, through the compiled loops."""

    def __init__(self, layout: ChainLayout, sequences: FeatureSequences, codes: Ints) -> None:
        """Codes (steps,) of the labels given."""
        self.layout, self.codes, self.offsets = layout, codes, sequences.offsets
        self.steps = SequenceSteps(sequences.values, layout.packing, sequences.offsets)
        # Masks would be looked through at each update, places are not.
        self._free, ends = np.flatnonzero(layout.free), np.flatnonzero(layout.ends)
        self._ends = ends if layout.boundaries else ends[:0]
        nothing = np.zeros(layout.length)
        self._logs = layout.transitions(nothing), layout.end_weights(nothing)

    @classmethod
    def where_they_pay(cls, layout: ChainLayout, sequences: FeatureSequences, codes: Ints) -> Residuals | None:
        """None where NumPy does, or where transitions depend on features."""
        fine = not len(layout.conditioned) and SequenceSteps.pay(sequences.values, layout.size, EVALUATIONS)
        return cls(layout, sequences, codes) if fine else None

    def differences(
        self, x: Floats, scale: float, chosen: Ints, shares: Floats, *, best: bool
    ) -> tuple[list[tuple[int, Floats]], Floats] | None:
        """By sequence (steps, W), and for the weights after the states; None where log space is needed.

        x (k,): the weights, those of states divided by `scale`. shares: of each of the chosen sequences. best: the
        features of the best path in place of those expected.
        """
        layout = self.layout
        states, size = layout.states(x).view(), layout.size
        states.flags.writeable = False
        link = self.steps.link(*self._weights(x), logs=best)
        residuals, moves, ends = [], np.zeros((size, size)), np.zeros((2, size))
        for s, share in zip(chosen.tolist(), shares.tolist(), strict=True):
            labels = self.codes[self.offsets[s] : self.offsets[s + 1]]
            if best:
                path = self.steps.best_path(s, states, link)
                if (path == labels).all():
                    continue
                rows = np.zeros((len(path), -(-size // 4) * 4))
                rows[np.arange(len(path)), path] = 1.0
                expected: NDArray[Any] = _moves(path, size)
            else:
                answer = self.steps.posteriors(s, states, scale, link)
                if answer is None:
                    return None
                rows, expected = answer
            rows *= -share
            rows[np.arange(len(labels)), labels] += share
            moves += share * (_moves(labels, size) - expected)
            ends += rows[[0, -1], :size]
            residuals.append((s, rows))
        return residuals, np.concatenate((moves.ravel()[self._free], ends.ravel()[self._ends]))

    def _weights(self, x: Floats) -> tuple[Floats, Floats]:
        """Log weights of transitions (K, K) and ends (2, K); they hold until the next call."""
        first, middle = self.layout.bounds[:2]
        transitions, ends = self._logs
        transitions.ravel()[self._free] = x[first:middle]
        ends.ravel()[self._ends] = x[middle:]
        return transitions, ends

    def gradient(self, x: Floats, chosen: Ints, shares: Floats) -> Floats | None:
        """Observed less expected features (k,); None where log space is needed."""
        answer = self.differences(x, 1.0, chosen, shares, best=False)
        if answer is None:
            return None
        states = np.zeros(self.layout.bounds[0])
        for s, rows in answer[0]:
            self.steps.add(s, rows, states)
        return np.concatenate((states, answer[1]))


class SparseEpoch:
    """One pass of updates from a memory of raw weights, their mean and the number of updates; see the module.

    shares(chosen): what each sequence counts in the gradient of a minibatch. precision: the prior's precision, over the
    number of sequences. dense(memory, chosen): the same update written out, where log space is needed.
    """

    def __init__(self, residuals: Residuals, kept: dict[str, Any], *, averaged: bool, precision: float) -> None:
        """The memory is changed in place."""
        self.residuals, self.kept, self.averaged, self.precision = residuals, kept, averaged, precision
        self.border = residuals.layout.bounds[0]
        self.states, self.rest = kept["raw"][: self.border], kept["raw"][self.border :]
        self.late = np.zeros(self.border if averaged else 0)
        self._begin()

    def _begin(self) -> None:
        self.scale, self.scales, self.since = 1.0, 0.0, int(self.kept["updates"])

    def run(
        self,
        batches: Iterable[Ints],
        shares: Callable[[Ints], Floats],
        step: Callable[[int], float] | None,
        dense: Dense,
    ) -> None:
        """Update with each minibatch; step: its length, None is the perceptron."""
        for chosen in batches:
            length = 1.0 if step is None else step(int(self.kept["updates"]))
            shrink = 1.0 - length * self.precision
            residuals = None
            if shrink > SMALLEST:
                args = (self.kept["raw"], self.scale, chosen, shares(chosen))
                residuals = self.residuals.differences(*args, best=step is None)
            if residuals is None:
                self.settle()
                dense(self.kept, chosen)
                self._begin()
                continue
            self._update(residuals, length, shrink)
            if self.scale < SMALLEST:
                self.settle()
        self.settle()

    def _update(self, residuals: tuple[list[tuple[int, Floats]], Floats], length: float, shrink: float) -> None:
        self.scale *= shrink
        for s, rows in residuals[0]:
            rows *= length / self.scale
            self.residuals.steps.add(s, rows, self.states)
            if self.averaged and self.scales:
                rows *= self.scales
                self.residuals.steps.add(s, rows, self.late)
        self.scales += self.scale
        self.rest *= shrink
        self.rest += length * residuals[1]
        self.kept["updates"] += 1
        if self.averaged:
            mean = self.kept["mean"][self.border :]
            mean += (self.rest - mean) / self.kept["updates"]

    def settle(self) -> None:
        """Multiply the scale out, and bring the mean of the states up to date."""
        count = int(self.kept["updates"])
        if self.averaged and count > self.since:
            mean = self.kept["mean"][: self.border]
            mean *= self.since / count
            mean += (self.scales * self.states - self.late) / count
            self.late[:] = 0.0
        self.states *= self.scale
        self._begin()


def uniform_precision(penalties: WeightPenalties) -> float | None:
    """The precision of a Gaussian prior that pulls all weights to 0 alike, 0 without a prior; None for other priors."""
    gaussian = penalties.gaussian
    if penalties.laplace is not None:
        return None
    if gaussian is None:
        return 0.0
    precision = gaussian.precision
    alike = precision.ndim == 1 and len(precision) and (precision == precision[0]).all()
    return float(precision[0]) if alike and not gaussian.mean.any() else None


def _moves(labels: Ints, size: int) -> NDArray[Any]:
    """How often each label follows each (K, K)."""
    return np.bincount(labels[:-1] * size + labels[1:], minlength=size * size).reshape(size, size)
