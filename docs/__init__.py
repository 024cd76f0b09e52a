"""The documents, their check (check.py) and what is generated in them (generate/)."""
