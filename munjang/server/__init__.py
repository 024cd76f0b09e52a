"""The HTTP server: requests of many clients, packed into shared batches, in the shapes that clients already speak."""
