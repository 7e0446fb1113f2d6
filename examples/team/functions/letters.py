"""Letters of words."""


def count_vowels(text: str) -> int:
    """Count the vowels in a text: a, e, i, o and u.

    Args:
        text: The text; capital letters count too.

    >>> count_vowels("queueing")
    5
    >>> count_vowels("SKY")
    0
    """
    return sum(letter in "aeiou" for letter in text.lower())
