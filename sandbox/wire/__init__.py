"""The wire between the host and a worker: values, frames, claims, and texts of others within bounds."""
