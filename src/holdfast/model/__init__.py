"""The nouns: plan, artifact, verdict, event, digest."""
