"""Conversations as their clients write them."""
