"""Helpers of the tests of a CrossEncoder."""

from tests.texts import mixed

PAIRS = list(zip(mixed(20, longest=15), mixed(20, seed=1, longest=15), strict=True))
