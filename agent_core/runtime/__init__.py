"""The turn: the loop, one call and its answer, the session around it."""
