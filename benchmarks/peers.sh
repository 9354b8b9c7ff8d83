#!/usr/bin/env bash
# `make peers`: record the outputs of other libraries in an environment of their own.
# Their torch goes with torchvision, the course's does not. About 6 GB; kept for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
env=_build/peers
if [ ! -x "$env/bin/python" ]; then
    "${1:-python3}" -m venv "$env"
    "$env/bin/python" -m pip install --quiet torch==2.14.1 torchvision==0.29.1 timm vit-pytorch transformers numpy scipy
    # big_vision's resize is TensorFlow's, its kernels are mapped by JAX
    [ ! -d "${PEER_SOURCES:-peer-sources}/big_vision" ] || "$env/bin/python" -m pip install --quiet tensorflow-cpu jax
fi
"$env/bin/python" benchmarks/peers.py
