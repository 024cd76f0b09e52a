"""PostgreSQL with pgvector: a store in a database."""
