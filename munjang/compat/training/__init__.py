"""Training under their names: transformers' own loop (extra), over our network and objectives."""
