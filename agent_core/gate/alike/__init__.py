"""What a function computes, however it is written: normal forms, and the index that finds its like."""
