"""Answer: any table in, coded batches out, one primitive to add up what a task makes of them."""

from suffice.sources.base import Batch, Source
from suffice.sources.opening import open_source
from suffice.sources.tally import Tally, summarize_source, tally

__all__ = ["Batch", "Source", "Tally", "open_source", "summarize_source", "tally"]
