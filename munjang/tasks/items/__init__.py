"""Recommendations: items like this one, or for what somebody likes."""
