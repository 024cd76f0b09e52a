"""Texts or pairs to rows: tokenize -> pack -> run -> place, one loop, on one device or several."""
