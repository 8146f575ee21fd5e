"""What runs in an engine replica: the engine's deployment, and each of its requests."""
