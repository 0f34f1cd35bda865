"""Data frames in partitions, on other machines: the task goes to them, only answers come back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from suffice.domain import Domain
from suffice.errors import OptionError
from suffice.sources.base import Answer, Batch, Progress, Source
from suffice.sources.columns import Column


class PartitionedSource(Source):
    """A frame of another library that maps a task over its partitions; states are found partition by partition."""

    residence = "elsewhere"
    #: Why rows and an array of weights cannot be brought together.
    _unmatched: ClassVar[str]

    def __init__(self, frame: Any, columns: Iterable[str]) -> None:
        """Keep the frame."""
        super().__init__(columns)
        self._frame = frame

    @property
    def rows(self) -> int | None:
        """Unknown before the partitions are computed."""
        return None

    def weigh(self, weights: Column) -> None:
        """An array cannot be matched with partitions."""
        raise OptionError(f"{self._unmatched}; name a column instead.")

    @abstractmethod
    def _total(self, task: Callable[[Batch], Answer], domain: Domain) -> Answer:
        """The sum of the answers of all partitions, which are computed where these are."""

    def reduce(
        self,
        task: Callable[[Batch], Answer],
        domain: Domain,
        *,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """The sum of ``task(batch)`` over all partitions.

        `threads` is left to the library of the frame; `progress` is called once, at the end.
        """
        self.check_columns(domain)
        self.passes += 1
        answer = self._total(task, domain)
        if progress is not None:
            progress(int(getattr(answer, "rows", 0)), None)
        return answer
