"""Texts that say what another says, dropped with the reason."""
