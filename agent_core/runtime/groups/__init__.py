"""Groups: several agents that answer as one. Who speaks next is decided by values alone; the loop lets them speak."""
