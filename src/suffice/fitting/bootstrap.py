"""The bootstrap: refits to rows that are drawn again, from the rows themselves or from the fit."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from suffice.array_types import Floats
from suffice.checks import choice, generator, whole_number
from suffice.choices import BootstrapKind, choices
from suffice.engines.workers import worker_count
from suffice.errors import EstimateError, OptionError, SufficeError, holding_remarks, require, warn
from suffice.fitting.inference import inference_of, quantile
from suffice.fitting.named import NamedVector, aligned, number_text
from suffice.fitting.row_marks import check_rows_again
from suffice.fitting.samples import cases, fit_arguments, rows_of_fit
from suffice.kernels.choice import one_path
from suffice.kernels.threads import run
from suffice.options import truth

if TYPE_CHECKING:
    from suffice.fitting.estimator import Estimator
    from suffice.fitting.inference import Inference

#: Parameters that a text shows.
SHOWN = 40
#: It stands for infinite estimates where percentiles are interpolated.
_LARGE = 1e300


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Parameters of refits: `estimates` (n, k) by `names`, beside the `original` ones (k,).

    `kind` is how rows were drawn, `asked` how many refits were wanted, `failed` how many raised an error, `first_error`
    the first of these, `unconverged` how many of those kept had not converged. A parameter that a refit does not have
    is NaN there.
    """

    names: tuple[str, ...]
    original: Floats
    estimates: Floats
    kind: str
    asked: int
    failed: int = 0
    first_error: str = ""
    unconverged: int = 0

    @property
    def n(self) -> int:
        """How many refits there are."""
        return len(self.estimates)

    @property
    def standard_errors(self) -> NamedVector:
        """The spread of the refits (k,): their standard deviation, with divisor n - 1; inf where one is infinite."""
        return self._of_columns(lambda column: float(np.std(column, ddof=1)) if np.isfinite(column).all() else math.inf)

    @property
    def bias(self) -> NamedVector:
        """Mean of the refits less the original estimates (k,)."""
        with np.errstate(invalid="ignore"):
            means = np.asarray(self._of_columns(lambda column: float(np.mean(column))))
            return NamedVector.of(means - self.original, self.names)

    def _of_columns(self, figure: Callable[[Floats], float]) -> NamedVector:
        """A figure of the refits that have each parameter (k,); NaN for one that no two have."""
        columns = [column[~np.isnan(column)] for column in self.estimates.T]
        return NamedVector.of([figure(column) if len(column) > 1 else math.nan for column in columns], self.names)

    @property
    def covariance(self) -> Floats:
        """Covariance of the refits (k, k)."""
        return np.atleast_2d(np.cov(self.estimates, rowvar=False))

    def intervals(self, level: float = 0.95, *, method: Literal["percentile", "basic"] = "percentile") -> NamedVector:
        """Intervals (k, 2): percentiles of the refits, or these reflected at the original estimates ("basic").

        Percentiles are those at places j / (n + 1), between which is interpolated, as R's boot has them (type 6).
        """
        choice(method, "method", ("percentile", "basic"))
        quantile(level)
        shares = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        low, high = (np.asarray(self._of_columns(partial(_percentile, share))) for share in shares)
        if method == "basic":
            low, high = 2.0 * self.original - high, 2.0 * self.original - low
        return NamedVector.of(np.stack((low, high), axis=1), self.names)

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each refit."""
        pd = require("pandas", extra="all", purpose="to_frame")
        return pd.DataFrame(self.estimates, columns=list(self.names))

    def _head(self) -> str:
        of = "" if self.n == self.asked else f" of {self.asked:,} asked for"
        parts = [f"{self.kind} bootstrap, {self.n:,} refits{of}"]
        if self.failed:
            parts.append(f"{self.failed:,} failed: {self.first_error}")
        if self.unconverged:
            parts.append(f"{self.unconverged:,} not converged")
        return "; ".join(parts)

    def _cells(self) -> list[list[str]]:
        columns = (self.original, self.bias, self.standard_errors, *np.asarray(self.intervals()).T)
        rows = zip(self.names[:SHOWN], *(np.asarray(column).tolist() for column in columns), strict=False)
        return [[name, *map(number_text, values)] for name, *values in rows]

    def __str__(self) -> str:
        """A row for each parameter."""
        titles = ["", "estimate", "bias", "std. error", "2.5%", "97.5%"]
        rest = len(self.names) - SHOWN
        more = [f"... ({rest:,} more)"] if rest > 0 else []
        return "\n".join([self._head(), "", *aligned([titles, *self._cells()]), *more])

    __repr__ = __str__


def _percentile(share: float, column: Floats) -> float:
    """The value below which a share of the refits lies, infinite next to one that is."""
    finite = np.clip(column, -_LARGE, _LARGE)
    value = float(np.quantile(finite, share, method="weibull"))
    return value if abs(value) < 1e-6 * _LARGE else math.copysign(math.inf, value)


def refits(
    model: Estimator,
    data: object,
    y: object,
    given: Mapping[str, Any],
    n: int,
    kind: BootstrapKind | None,
    random_state: Any,
    threads: int | None,
    *,
    progress: bool,
) -> Bootstrap:
    """The bootstrap of a fitted model; see `Estimator.bootstrap`."""
    whole_number(n, "n", least=2)
    truth(progress, "progress")
    inference, portrait = inference_of(model), model.portrait()
    if kind is None:
        kind = "parametric" if data is None else "case"
    rows = rows_of_fit(model, fit_arguments(data, y, given))
    again: Callable[[], Any] = portrait.again or (lambda: model.clone())
    if choice(kind, "kind", choices(BootstrapKind)) == "case":
        if data is None:
            raise OptionError("kind='case' draws rows, and a model keeps none: give those of the fit, bootstrap(rows).")
        draw = cases(rows if portrait.parted is None else portrait.parted(rows))
    elif portrait.redraw is None:
        raise EstimateError(
            f"There are no draws from a {type(model).__name__} that are rows to fit. Give rows for kind='case'."
        )
    else:
        redraw = portrait.redraw
        draw = lambda rng: dict(redraw(rows, rng))  # noqa: E731
        draw(np.random.default_rng(0))  # What was given and makes no draws is an error at once, and not of each refit.
    if data is not None:
        check_rows_again(model, rows)
    seed = np.random.SeedSequence(int(generator(random_state).integers(2**63)))
    work = _Refits(again, draw, inference)
    work.go(seed.spawn(n), worker_count(threads), progress=progress)
    return work.result(kind, n)


class _Refits:
    """Refits under way: threads take one at a time, and leave the parameters here."""

    def __init__(
        self, again: Callable[[], Any], draw: Callable[[np.random.Generator], dict[str, Any]], inference: Inference
    ) -> None:
        """again: makes a model to be fitted; draw: makes the arguments of its fit."""
        self.again, self.draw, self.inference = again, draw, inference
        self.done: dict[int, Floats] = {}
        self.errors: dict[int, str] = {}
        self.unconverged = 0
        self.stop = threading.Event()

    def go(self, seeds: list[np.random.SeedSequence], threads: int, *, progress: bool) -> None:
        """Make the refits, or as many as there are until Ctrl-C."""
        with one_path(), _bar(len(seeds), wanted=progress) as advance:

            def one(item: tuple[int, np.random.SeedSequence], _: int) -> None:
                number, own = item
                try:
                    with holding_remarks():
                        values, converged = self._refit(np.random.default_rng(own))
                    if not self.stop.is_set():
                        self.done[number] = values
                        self.unconverged += not converged
                except SufficeError as error:
                    self.errors[number] = str(error)
                except KeyboardInterrupt:
                    self.stop.set()
                    raise
                advance()

            try:
                run(one, enumerate(seeds), min(threads, len(seeds)))
            except KeyboardInterrupt:
                self.stop.set()

    def _refit(self, rng: np.random.Generator) -> tuple[Floats, bool]:
        """The parameters (k,) of one refit, and whether it has converged."""
        given = self.draw(rng)
        model = self.again()
        model.set_params(**{name: value for name, value in self._steered().items() if name in model._options})
        first = given.pop("data")
        model.fit(first, **({"y": given.pop("y")} if "y" in given else {}), **given)
        if model.stop_reason_ == "interrupted":  # Ctrl-C reached the fit, which gives its best so far.
            raise KeyboardInterrupt
        seen = inference_of(model)
        if seen.names == self.inference.names:
            return seen.values, model.converged_
        values = dict(zip(seen.names, seen.values.tolist(), strict=True))
        return np.array([values.get(name, np.nan) for name in self.inference.names]), model.converged_

    def _steered(self) -> dict[str, Any]:
        """Options of a run: one thread for each refit, and an end as soon as somebody says stop."""
        return {"threads": 1, "progress": False, "checkpoint": None, "callback": lambda _: self.stop.is_set()}

    def result(self, kind: str, asked: int) -> Bootstrap:
        """What there is, in the order of the seeds."""
        first = self.errors[min(self.errors)] if self.errors else ""
        if len(self.done) < 2:
            raise EstimateError(
                f"{len(self.done)} of {asked:,} refits gave parameters; a spread needs two."
                + (f" The first error: {first}" if first else "")
            )
        if len(self.done) + len(self.errors) < asked:
            warn(f"The bootstrap was interrupted: it has {len(self.done):,} of {asked:,} refits.")
        estimates = np.array([self.done[number] for number in sorted(self.done)])
        names, original = self.inference.names, self.inference.values
        return Bootstrap(names, original, estimates, kind, asked, len(self.errors), first, self.unconverged)


@contextmanager
def _bar(total: int, *, wanted: bool) -> Iterator[Callable[[], None]]:
    """A bar over refits, which threads move on."""
    if not wanted:
        yield lambda: None
        return
    from tqdm.auto import tqdm

    lock = threading.Lock()
    with tqdm(total=total, unit=" refits", leave=False) as shown:

        def advance() -> None:
            with lock:
                shown.update()

        yield advance
