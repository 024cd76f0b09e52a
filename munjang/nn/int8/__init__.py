"""8-bit arithmetic of an encoder on a CPU: `pack.pack` is the entry."""
