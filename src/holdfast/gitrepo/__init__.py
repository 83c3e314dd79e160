"""What is asked of a git repository: its files at a commit, and worktrees that come and go."""
