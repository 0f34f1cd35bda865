"""The families with several parameters, by name."""

from __future__ import annotations

from suffice.models.glm.ordinal_family import OrdinalFamily
from suffice.models.glm.vector_families import MultinomialFamily, MultivariateGaussianFamily, VectorFamily

VECTOR_FAMILIES: dict[str, VectorFamily] = {
    family.name: family for family in (MultinomialFamily(), MultivariateGaussianFamily(), OrdinalFamily())
}
