"""Texts to labels: from many examples, from a few, or from descriptions alone."""
