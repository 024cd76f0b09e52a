"""The HTTP server: requests of many clients share batches, in the shapes that clients already use."""
