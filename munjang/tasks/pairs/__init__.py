"""Pairs that say the same: paraphrases, translations, and the graph of neighbours that they make."""
