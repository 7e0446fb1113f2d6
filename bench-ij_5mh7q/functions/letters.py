def count_vowels(text: str) -> int:
    """Count the vowels in a text.

    Args:
        text: The text to look at.

    Returns:
        How many of its letters are a, e, i, o or u.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("rhythm")
    0
    """
    return sum(letter in "aeiou" for letter in text.lower())
