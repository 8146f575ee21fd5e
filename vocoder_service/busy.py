"""Said when an encoder has no room; apart, so that who catches it need not load torch."""


class EncoderBusy(RuntimeError):
    """As many clips wait as may; try again later."""
