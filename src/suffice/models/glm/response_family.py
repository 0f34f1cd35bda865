"""What a generalised linear model asks of the family of its response, whatever the number of linear predictors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from suffice.errors import OptionError
from suffice.models.glm.coefficients import Coefficients
from suffice.models.glm.design import DesignRows
from suffice.models.glm.links import Link, find_link

Floats = NDArray[np.float64]

#: What a response is: numbers, successes out of trials, labels, ordered labels, or several numbers a row.
ResponseKind = Literal["numbers", "shares", "labels", "ordered", "vectors"]


class ResponseFamily(ABC):
    """A family of distributions of the response.

    `links` are those that it takes, of which `canonical` is the default. A family that is written for
    `suffice.models.glm.registry.register` is a subclass of `families.Family`, which has one linear predictor.
    """

    name: str = ""
    canonical: str = "identity"
    links: tuple[str, ...] = ()
    response: ClassVar[ResponseKind]
    #: Whether phi is to be estimated.
    free_dispersion: ClassVar[bool] = False
    #: Values that y may take, in words.
    support: ClassVar[str] = "finite numbers"

    @property
    def labels(self) -> bool:
        """Whether the response is a label."""
        return self.response in ("shares", "labels", "ordered")

    def link(self, name: str) -> Link:
        """A link by its name."""
        return find_link(name)

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options of a model that the family has no use for."""
        if options["reference"] is not None and self.response != "labels":
            raise OptionError(f"reference= belongs to the multinomial family; the {self.name} family has none.")

    @abstractmethod
    def linear(self, fitted: Coefficients, table: DesignRows, offset: Floats | None) -> Floats:
        """Linear predictors (n, m) of rows; infinite where a separating direction decides them."""

    @abstractmethod
    def predict(self, fitted: Coefficients, eta: Floats, kind: str) -> Any:
        """The answer of `GLM.predict` at linear predictors (n, m): "response", "link" or "class"."""

    @abstractmethod
    def log_prob_of_rows(self, fitted: Coefficients, eta: Floats, y: Floats, trials: Floats | None) -> Floats:
        """Log density or probability of each row (n,)."""

    @abstractmethod
    def draw(self, fitted: Coefficients, mean: Floats, rng: np.random.Generator) -> Any:
        """One response for each row of probabilities or means, (n,) or (n, m)."""
