"""The error of every reader."""


class StreamError(ValueError):
    """Input that cannot be read; the message says where, what was found, and what to do."""
