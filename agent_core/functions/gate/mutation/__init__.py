"""Small changes to a function's text, and the text with them in place."""
