"""Transcriptions as their clients ask for them, and what they get."""
