#!/usr/bin/env bash
# make demo: from nothing to a served verdict on the embedded backbone, on two CPU cores.
# Usage: demo.sh [EVOUNA NQ.json]
set -euo pipefail
out=runs/demo
rm -rf "$out"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$(nproc)}"  # accelerate launch would set 1

echo "== 1/5 fetch the embedded backbone"
custos backbone embedded

echo "== 2/5 make training data; its labels are true by construction, not given by people"
custos prep synthetic --worlds open --rows 7000 --seed 0 --out "$out/data"

echo "== 3/5 train the judge with class-balanced focal loss, calibrate, test on unseen surface forms"
accelerate launch train/hieval_stage1.py --config recipes/embedded/demo.yaml

if [ -n "${1:-}" ]; then
  echo "== human-labelled test: EVOUNA, never trained on here"
  custos prep evouna --source "$1" --out "$out/evouna"
  custos eval "$out/judge" --data "$out/evouna/test.jsonl" --out "$out/evouna-report" --no-zero-shot
fi

echo "== 4/5 serve it"
custos serve --judge "qs=$out/judge" --port 8321 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for _ in $(seq 120); do
  curl -fsS http://127.0.0.1:8321/health/ready > /dev/null 2>&1 && break
  sleep 1
done

echo "== 5/5 ask for a verdict"
curl -fsS http://127.0.0.1:8321/judge -H 'Content-Type: application/json' -d '{
  "task": "hieval-qs",
  "question": "who built the lighthouse of Torvane",
  "references": ["Maren Oldigast", "M. Oldigast"],
  "reference_mode": "any",
  "response": "The lighthouse of Torvane was built by Joris Pellwin in 1874."
}' | python -m json.tool
