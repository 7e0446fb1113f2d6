"""The gate and the sandbox without a model: judge a function, admit it, call it.

python examples/grow_by_hand.py
"""

import asyncio
import tempfile

from agent_core import Workspace

CODE = '''
def initials(name: str) -> str:
    """Give the initials of a name.

    Args:
        name: First and last names.

    >>> initials("ada lovelace")
    'AL'
    >>> initials("Grace Brewster Hopper")
    'GBH'
    """
    return "".join(word[0].upper() for word in name.split())
'''


async def main() -> None:
    """Grow one function in a temporary workspace."""
    with tempfile.TemporaryDirectory() as folder:
        async with Workspace.open(folder) as workspace:
            verdict = await workspace.functions.create(
                "initials", CODE, "names", reason="an example"
            )
            for stage in verdict.stages:
                if not stage.note.startswith("not run"):
                    print(
                        f"{stage.stage:12} {'passed' if stage.passed else 'REFUSED'}  {stage.note}"
                    )
            outcome = await workspace.functions.call(
                "initials", {"name": "Margaret Heafield Hamilton"}
            )
            print(outcome.outcome, outcome.value)


if __name__ == "__main__":
    asyncio.run(main())
