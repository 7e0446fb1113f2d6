"""The wire format between host and worker: values, frames, checks of claims, and bounded parsing of text."""
