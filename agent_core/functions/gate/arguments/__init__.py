"""Generated calls: near those of the examples, at the edges of the hints; and the shortest that fails. Pure."""
