"""``speechlm eval``: how well a served model speaks and hears, judged by machines."""
