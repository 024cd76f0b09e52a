"""Limits of filters and metadata, the same for every engine: what each was measured to take (attack/filters.py)."""

MAX_FILTER_CHARS = 10_000
MAX_DEPTH = 64  # parentheses and nots inside each other; engines end the process somewhere above 400
MAX_IN_VALUES = 1_000  # of one `in`
MAX_TESTS = 5_000  # of a whole filter: comparisons and values of `in`
MAX_FIELDS = 500  # of an index: LanceDB searches 300 rows in 6 ms without fields, in 30 ms with so many
MAX_KEYS = 100  # of a document
MAX_NAME_CHARS = 200  # of a field
