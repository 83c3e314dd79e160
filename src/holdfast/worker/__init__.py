"""The executive worker: a ticket in, committed and validated work out.

A ticket is a line of its own. Its plan is made here, one cycle after the other, and run by the engine:

    cycle-N    a model, a script or a command-line agent works in the ticket's own worktree; the repository's
               own checks are its guards
    deliver-N  what was accepted becomes commits and the task tree; the ticket's branch moves to them

Nothing of it touches the person's work tree.
"""
