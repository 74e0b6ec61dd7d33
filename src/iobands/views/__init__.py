"""Texts, lines and documents for the packages above."""
