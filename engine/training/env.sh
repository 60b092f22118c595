# shellcheck shell=sh
# Sourced: the environment of a training process. PYTHON is one that can import torch.
#
# Large tensors are given back to the kernel by default and page-faulted in again at every step;
# keeping them in the heap makes training several times faster. A waiting thread sleeps, because
# the trainer is meant to run next to other work.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=20000000000 MALLOC_TOP_PAD_=268435456
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1 OMP_WAIT_POLICY=passive
# The kernels are compiled with -ffast-math, which NumPy notices and need not mention.
export PYTHONWARNINGS="ignore:The value of the smallest subnormal"
if [ -z "${PYTHON:-}" ]; then
  for PYTHON in python3 /usr/bin/python3; do
    "$PYTHON" -c 'import torch, numpy' 2>/dev/null && break
    PYTHON=
  done
fi
if [ -z "$PYTHON" ]; then
  echo "no python3 with torch and numpy found (Debian: python3-torch python3-numpy)" >&2
  exit 3
fi
export PYTHON
