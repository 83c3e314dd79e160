"""The page: the same store and the same sentences as the command, in a browser on this machine."""
