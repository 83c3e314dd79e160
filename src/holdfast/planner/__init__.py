"""From a goal to a plan: what a model is asked, and how its answer is checked and becomes steps."""
