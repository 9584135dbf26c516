#!/bin/sh
# What the image is made of, step by step: the Dockerfile runs these, and so does its test.
#
#   docker/steps.sh install VENV TORCH   custos and its pinned packages; TORCH is cpu, cu126, ...
#   docker/steps.sh bake VENV            fetch the embedded backbone into $CUSTOS_CACHE
#   docker/steps.sh healthy VENV URL     exit 0 if the service there takes requests
set -eu
cd "$(dirname "$0")/.."
step=$1 venv=$2

case $step in
install)
    python3 -m venv "$venv"
    torch=$(grep '^torch==' constraints.txt)
    # The local version says which build: without it the package index gives the CUDA one.
    "$venv/bin/pip" install --quiet --constraint constraints.txt "$torch+$3"
    "$venv/bin/pip" install --quiet --constraint constraints.txt --editable .
    ;;
bake)
    "$venv/bin/custos" backbone embedded
    ;;
healthy)
    "$venv/bin/python" -c '
import sys, urllib.request
urllib.request.urlopen(sys.argv[1] + "/health/ready", timeout=4)
' "$3"
    ;;
*)
    echo "unknown step: $step" >&2
    exit 2
    ;;
esac
