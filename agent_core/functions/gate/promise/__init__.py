"""The promise of a function, compared with what it does on varied arguments."""
