"""LanceDB: a store in a folder."""

import os

# Read when lancedb is imported: its warnings are about the engine, not about what people did
os.environ.setdefault("LANCEDB_LOG", "error")
