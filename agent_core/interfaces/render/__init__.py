"""Results as lines for people: one module for each kind of them."""
