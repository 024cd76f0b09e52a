"""Other libraries' clients against a running server, each in a process of the venv that `make clients` builds."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

HERE, ROOT = Path(__file__).parent / "clients", Path(__file__).parents[2]
PYTHON = Path(os.environ.get("MUNJANG_CLIENTS", ROOT / ".venv-clients" / "bin" / "python"))
CLIENTS = re.findall(r"^def (\w+)\(url", (HERE / "ask.py").read_text(), re.MULTILINE)
TEXTS = ["hello world", "나는 오늘 학교에 간다", "the cat"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_client(name: str, server: Any, model: BiEncoder, scorer: CrossEncoder) -> None:
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON}: make clients")
    command = [str(PYTHON), str(HERE / "ask.py"), name, server.url, *TEXTS]
    quiet = {"HF_HUB_OFFLINE": "0", "HAYSTACK_TELEMETRY_ENABLED": "false", "LITELLM_LOCAL_MODEL_COST_MAP": "true"}
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment | quiet, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    units, plain = model.encode(TEXTS, normalize=True), model.encode(TEXTS)
    wanted = {"vectors": plain, "query": plain[0], "normalized": units}
    if name == "haystack_tei":  # it says normalize: false
        wanted["vectors"] = model.encode(TEXTS, normalize=False)
    for what in set(wanted) & set(found):
        np.testing.assert_allclose(found[what], wanted[what], rtol=1e-5, atol=1e-5)
    logits = scorer.predict([(TEXTS[0], text) for text in TEXTS], activation="Identity")
    scores = dict(zip(TEXTS, (1 / (1 + np.exp(-logits))).tolist(), strict=True))
    assert found.get("scores", scores) == pytest.approx(scores, abs=1e-5)
    assert {"vectors", "scores"} & set(found)
