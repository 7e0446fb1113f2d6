"""Groups: several agents that answer as one. Pure values decide who speaks next; the loop lets them speak."""
