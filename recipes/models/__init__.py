"""A re-ranker from data in four stages: `python -m recipes.models` runs them."""
