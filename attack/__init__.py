"""Attacks on the whole system, each with counts and a verdict: `python -m attack PART ...`."""
