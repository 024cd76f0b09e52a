"""Data in and out: readers of tables, examples, samplers, mixtures, writers of vectors."""
