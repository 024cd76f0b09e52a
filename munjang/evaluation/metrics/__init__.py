"""Metrics as pure functions of numbers: no model, no file."""
