"""How well questions find their files: commit messages of real histories, and the files they changed."""
