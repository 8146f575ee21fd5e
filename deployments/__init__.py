"""The service around the engine: HTTP, Ray Serve deployments, settings, command line."""
