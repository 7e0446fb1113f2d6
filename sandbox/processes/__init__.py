"""The processes of the sandbox: a zygote, its pools of workers, one call in one worker."""
