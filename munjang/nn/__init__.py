"""The packed network: encoder, attention, pooling, heads, and what a CPU and a GPU compute them with."""
