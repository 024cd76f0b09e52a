"""Arithmetic on vectors alone: similarity, precision, nearest neighbours, k-means, logistic regression."""
