"""The version, in one place: the build and the signature both read it here."""

__version__ = "0.9.0"
