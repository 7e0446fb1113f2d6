"""The signal handling of a program started at a terminal, whatever the parent of the test run ignores or blocks."""

import signal

DEFAULTS = (
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGCHLD,
    signal.SIGWINCH,
)


def restore_signals() -> None:
    """Give this process the signal dispositions of a login shell; its children inherit them.

    `nohup`, a background job and some CI runners start their children with SIGINT or SIGHUP ignored.
    """
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in DEFAULTS:
        signal.signal(number, signal.SIG_DFL)
