"""Processes: run commands and end them with everything they start; what they may touch and use up."""
