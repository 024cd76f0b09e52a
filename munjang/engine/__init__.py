"""One call of encode or predict: texts to packed batches to vectors, on one device or several."""
