"""Stores: ids, vectors, texts and metadata on engines that exist. A store never sees a model."""
