"""Keywords: the phrases of a text that are nearest to it."""
