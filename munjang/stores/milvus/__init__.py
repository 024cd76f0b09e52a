"""Milvus: a store in a server, or in a folder by milvus-lite."""
