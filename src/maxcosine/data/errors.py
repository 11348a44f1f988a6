"""The error of every reader."""


class StreamError(ValueError):
    """Input that cannot be read; the message gives the place, the fault and a remedy."""
