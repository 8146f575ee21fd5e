"""One router per group of endpoints."""
