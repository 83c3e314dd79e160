"""Many workers on one store: simulated hands, real claims."""
