"""Embeddings of an endpoint are fetched without the SDK of a provider, whose import takes half a second."""

import subprocess
import sys


def test_the_sdk_is_not_imported_for_embeddings() -> None:
    code = "import sys, agent_core.memory.embedding.endpoint; print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
