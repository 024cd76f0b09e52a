"""Beyond one machine: offline encoding on Ray Data, exact search over its files, and the way to a billion."""
