"""Texts of the index that tests of routes search in."""

from tests.texts import ENGLISH, KOREAN

TEXTS = [*dict.fromkeys([*ENGLISH, *KOREAN])][:40]
