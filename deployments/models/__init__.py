"""The models that are served: what their directories and settings say of them."""
