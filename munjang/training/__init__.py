"""Training: what makes a model better at its task, and the data for it."""
