"""Texts that repeat what another says, dropped with the reason."""
