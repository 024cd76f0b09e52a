"""The tokenizer's look-up: spans of text to ids by a table; `lookup.py` tells how."""
