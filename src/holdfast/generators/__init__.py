"""Generators: what makes a candidate, one module for each way."""
