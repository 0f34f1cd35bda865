"""Numbers of certificates that a test compares: they must be there."""

from suffice.fitting.report import Certificate


def slope_of(certificate: Certificate) -> float:
    """The largest component of the gradient at the result, which the model must have measured."""
    assert certificate.slope is not None
    return certificate.slope
