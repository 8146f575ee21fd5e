"""Tiny checkpoints in the official formats, and their tensors as a reference reads them.

A module per family writes what ESPnet publishes: its file, its tensors' names, its vocabulary and
whatever lies beside it. They know those formats, and nothing of the converter.
"""
