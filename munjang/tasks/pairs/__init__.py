"""Pairs that mean the same: paraphrases, translations, and the graph of neighbours that they make."""
