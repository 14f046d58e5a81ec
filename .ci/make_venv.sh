#!/usr/bin/env bash
# Makes the virtual environment: make_venv.sh VENV STAMP. Works from Python 3.11 with pip alone.
set -euo pipefail
venv=$1 stamp=$2

find_python() {
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$name"
      return
    fi
  done
  echo "rsi needs Python 3.11 or newer, and none is on the PATH" >&2
  exit 2
}

python=$(find_python)
# One that was cut off while it was made, or whose Python is gone, is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  rm -rf "$venv"
  echo "[setup] virtual environment: about 10 s, then about 3 min for what goes in" >&2
  if ! "$python" -m venv "$venv" 2>/dev/null; then
    rm -rf "$venv"
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
      echo "$python has no venv module; install it (Debian: apt-get install python3-venv)" >&2
      exit 2
    fi
    echo "[setup] Debian's python3-venv: about 20 s" >&2
    apt-get update -q >/dev/null && apt-get install -y -q python3-venv >/dev/null
    "$python" -m venv "$venv"
  fi
fi

began=$SECONDS
echo "[setup] dependencies: about 3 min, the first time (PyTorch is the largest)" >&2
# shellcheck disable=SC2086  # RSI_PIP_ARGS holds several arguments on purpose.
if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input \
  --root-user-action=ignore ${RSI_PIP_ARGS:-} -e '.[train,dev]'; then
  echo "[setup] pip could not install the dependencies: see above. Mend that and run again;" >&2
  echo "        RSI_PIP_ARGS gives pip more arguments, such as another index." >&2
  exit 3
fi
echo "[setup] bytecode: about 30 s" >&2
# Some packages carry files for newer Pythons, which don't compile: they are never imported.
"$venv/bin/python" -m compileall -q -j 0 "$venv/lib" rsi flows migrations >/dev/null 2>&1 || true
rm -f "$venv"/stamp-*
touch "$stamp"
echo "[setup] dependencies: ready after $((SECONDS - began)) s" >&2
