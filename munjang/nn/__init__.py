"""The packed network: encoder, attention, pooling, heads, and their kernels for CPUs and GPUs."""
