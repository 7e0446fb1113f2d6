"""Results as lines of text for people, with one module for each kind of result."""
