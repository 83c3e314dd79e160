"""The version, as a constant."""

VERSION = "0.1.0"
