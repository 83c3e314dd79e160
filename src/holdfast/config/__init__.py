"""What a person, a project and the environment say about how Holdfast behaves."""
