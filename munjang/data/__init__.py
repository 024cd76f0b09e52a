"""Data in and out: readers of tables of text, writers of vectors."""
