"""Groups of texts: k-means, agglomerative, HDBSCAN, communities; and what each is about."""
