"""Tests of the starter functions."""
