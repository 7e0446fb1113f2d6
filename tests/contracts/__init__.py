"""Contracts: what others build on, as files that the tests compare with the program."""
