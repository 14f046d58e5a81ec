"""Serves one base and its adapters on a loopback port: `python -m rsi.worker.serve`.

One JSON line on standard input says what to serve (`ServeJob`); one JSON line on standard output
says where (`Serving`). The process ends when its standard input does, so that it never outlives
the process that started it. llama.cpp's own log goes to standard error.
It imports no torch, and a crash inside llama.cpp ends this process alone.
"""

import os
import sys
from typing import TextIO

import xllamacpp

from rsi.domain.job import ServeJob, Serving


def main() -> None:
    """Serves until standard input ends; exits non-zero when the server could not start."""
    answer = _own_standard_output()
    job = ServeJob.model_validate_json(sys.stdin.readline())
    server = xllamacpp.Server(_params(job))
    answer.write(Serving(url=server.listening_address).model_dump_json() + "\n")
    answer.flush()
    while sys.stdin.read(4096):
        pass
    # llama.cpp's threads may be in the middle of a request; nothing here needs a tidy end.
    os._exit(0)


def _own_standard_output() -> TextIO:
    """Standard output, for this module alone: whatever llama.cpp prints goes to standard error."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _params(job: ServeJob) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = str(job.model)
    params.n_parallel = job.slots
    params.n_ctx = job.context_tokens * job.slots
    params.cpuparams.n_threads = job.threads
    params.cpuparams_batch.n_threads = job.threads
    params.api_keys = [job.key]
    params.ui = False
    # With flash attention and a cache per slot a greedy reply of the Q4_1 base doesn't depend on
    # what runs beside it (0 of 60 changed, also with a trained adapter; with random adapters, whose
    # tokens are nearly tied, 1 in 20). Without either of them about half of the replies change.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.kv_unified = False
    # The cache of prompts in memory is looked up by tokens alone, whatever adapter filled it.
    params.cache_ram_mib = 0
    # Scale 0: a request without `lora` would otherwise get the adapter.
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(str(p), 0.0) for p in job.loras]
    params.verbosity = 2
    return params


if __name__ == "__main__":
    main()
