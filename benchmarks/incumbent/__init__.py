"""Run sentence-transformers' own tests and examples through munjang.compat: `make compat-check`."""
