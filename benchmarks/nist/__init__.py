"""Certified digits: the reference data sets of NIST, and how many digits each library gets right."""
