"""The bench of the worker: tickets whose right answer is known, done by anybody, judged by hidden tests.

case      a ticket, the commit it begins with, and the tests that the worker never sees
samples   ten tickets over two small repositories that ship with Holdfast
history   tickets out of a git history: a commit that changes source and tests is one
laying    fresh repositories that hold a commit and what led to it, and nothing that came after
trial     one case: see that it is one, let `holdfast work` do it, judge what came of it
results   what came of each, kept as soon as it is known; the sums
"""
