"""The documentation site: built by MkDocs from docs/, with what comes from code put in while it is built."""
