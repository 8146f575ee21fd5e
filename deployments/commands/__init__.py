"""The commands of ``speechlm``, one per module."""


class CommandError(Exception):
    """A command cannot do what was asked; the message is for whoever typed it."""
