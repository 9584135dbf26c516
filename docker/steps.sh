#!/bin/sh
# The steps that make the image: the Dockerfile runs them, and so does its test.
#
#   docker/steps.sh install VENV TORCH   install custos and its pinned packages; TORCH: cpu, cu126, ...
#                                        With TORCH_SHA256 the file of torch must have this hash.
#   docker/steps.sh bake VENV            fetch the embedded backbone into $CUSTOS_CACHE
#   docker/steps.sh healthy VENV URL     exit with 0 if the service at URL takes requests
set -eu
step=$1 venv=$2

case $step in
install)
    cd "$(dirname "$0")/.."
    python3 -m venv "$venv"
    install() { "$venv/bin/pip" install --quiet "$@"; }
    install --require-hashes --only-binary=:all: --no-deps --requirement requirements.lock
    # The version's last part names the build: without it the package index gives the CUDA one.
    torch=$(grep '^torch==' constraints.txt)+$3
    if [ -n "${TORCH_SHA256:-}" ]; then
        echo "$torch --hash=sha256:$TORCH_SHA256" > torch.lock
        install --require-hashes --only-binary=:all: --no-deps --requirement torch.lock
    fi
    install --only-binary=:all: --constraint constraints.txt "$torch"
    install --no-deps --no-build-isolation .
    "$venv/bin/pip" check
    ;;
bake)
    "$venv/bin/custos" backbone embedded
    ;;
healthy)
    # Proxies that the environment names cannot reach this machine.
    no_proxy='*' "$venv/bin/python" -c '
import sys, urllib.request
urllib.request.urlopen(sys.argv[1] + "/health/ready", timeout=4)
' "$3"
    ;;
*)
    echo "unknown step: $step" >&2
    exit 2
    ;;
esac
