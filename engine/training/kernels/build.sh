#!/bin/sh
# Builds the training kernels: build.sh [OUTPUT]. Needs g++ 11 or later and a CPU with AVX512_BF16.
set -eu
cd "$(dirname "$0")"
if ! grep -q avx512_bf16 /proc/cpuinfo; then
  echo "this CPU has no AVX512_BF16 (Zen 4, Sapphire Rapids or later needed);" \
    "train with --backend torch, or on CUDA" >&2
  exit 3
fi
# gcc 12 warns about the undefined lanes inside its own intrinsics, hence the two -Wno flags.
${CXX:-g++} -std=c++20 -O3 -march=native -mno-avx512fp16 -mprefer-vector-width=512 -ffast-math \
  -fopenmp -fPIC -shared -Wall -Wextra -Wno-uninitialized -Wno-maybe-uninitialized \
  gemm.cpp delta_rule.cpp attention.cpp elementwise.cpp muon.cpp decode.cpp -o "${1:-kernels.so}"
