"""The processes: a zygote, its pools of workers, one call in one worker, workers that keep state."""
