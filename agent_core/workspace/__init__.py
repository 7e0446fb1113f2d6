"""One workspace: its agents, helpers, presets, agent files, doctor and scaffold."""
