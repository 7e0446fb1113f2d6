"""One workspace: its agents, presets, files of agents, doctor, scaffold."""
