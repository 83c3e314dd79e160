"""Plan files: YAML or JSON in, checked plans out, every problem with its place."""
