"""More than one machine: encoding on Ray Data, exact search over its files, what a billion costs."""
