"""Run commands safely: cancellable with every descendant, output capped and streamed."""
