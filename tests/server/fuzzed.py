"""Serve tiny models, an index and keys on a port, for a fuzzer: python -m tests.server.fuzzed MODEL RANKER SECONDS."""

import sys
import tempfile
import time
from pathlib import Path

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.index import Index
from munjang.server.embedder import Embedder
from munjang.server.limits import AccessRules
from munjang.server.reranker import Reranker
from munjang.server.service import Service
from munjang.server.tenants import Keyring
from munjang.server.views import ServedIndex
from tests.server.running import running


def main(model: str, ranker: str, seconds: str) -> None:
    """Print the address, then serve."""
    encoder, keys = BiEncoder.load(model, "cpu", threads=1), Path(tempfile.mkdtemp()) / "keys.json"
    index = Index.open("memory:", encoder)
    index.add(["The sea is deep", "바다는 깊다"], ["a", "b"], [{"year": 2000}, {"year": 2001}])
    scorer = Reranker("ranker", CrossEncoder.load(ranker, "cpu", threads=1))
    service = Service([Embedder("tiny", encoder)], [scorer], [ServedIndex("notes", index)])
    with running(service, AccessRules(Keyring(["the-key"], keys))) as server:
        print(server.url, flush=True)
        time.sleep(float(seconds))


if __name__ == "__main__":
    main(*sys.argv[1:])
