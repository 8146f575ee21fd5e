"""Metrics: what is measured (definitions), where it goes (sinks), and how it gets there."""
