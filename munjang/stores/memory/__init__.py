"""A store in memory: exact search, nothing to install, gone with the process."""
