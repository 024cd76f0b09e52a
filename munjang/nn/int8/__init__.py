"""8-bit arithmetic of an encoder on a CPU: `prepack.prepack` is the entry."""
