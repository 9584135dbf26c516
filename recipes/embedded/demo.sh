#!/usr/bin/env bash
# make demo: from data to a served verdict on the embedded backbone, on two CPU cores.
# Usage: demo.sh [EVOUNA NQ.json]
set -euo pipefail
out=runs/demo
rm -rf "$out"
export CUDA_VISIBLE_DEVICES="${CUDA_VISIBLE_DEVICES:-}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-$(nproc)}"  # accelerate launch would set 1

echo "== 1/7 fetch the embedded backbone"
facts=$(custos backbone embedded)
echo "$facts"

# A CPU without bfloat16 instructions computes in float32, several times slower: with AVX2 alone all
# of this takes about 40 minutes, and a quarter of an hour from nothing gives no judge. There it goes
# on from a trained one, on fewer rows.
rows=7000 steps=100 shorter=() seen="never trained on here"
if grep -q "^dtype *float32" <<< "$facts"; then
  rows=1200 steps=15 seen="other questions than the shipped judge was trained on"
  shorter=(adapter.init=judges/embedded-qs optim.lr=5e-4 optim.batch_size=8 optim.micro_batch_size=8)
  echo "This CPU has no bfloat16 instructions and is too slow to train from nothing in a quarter of an"
  echo "hour: training goes on from the shipped judges/embedded-qs, on a sixth of the rows."
fi

echo "== 2/7 make training data; its labels are true by construction, not given by people"
custos prep synthetic --worlds open --rows "$rows" --seed 0 --out "$out/data"

echo "== 3/7 train the judge with class-balanced focal loss, calibrate, test on unseen surface forms"
accelerate launch train/hieval_stage1.py --config recipes/embedded/demo.yaml "${shorter[@]}"

if [ -n "${1:-}" ]; then
  echo "== human-labelled test: EVOUNA, $seen"
  custos prep evouna --source "$1" --out "$out/evouna"
  custos eval "$out/judge" --data "$out/evouna/test.jsonl" --out "$out/evouna-report" --no-zero-shot
fi

echo "== 4/7 serve it"
custos serve --judge "qs=$out/judge" --port 8321 &
server=$!
trap 'kill $server 2>/dev/null' EXIT
for _ in $(seq 120); do
  curl -fsS http://127.0.0.1:8321/health/ready > /dev/null 2>&1 && break
  sleep 1
done

echo "== 5/7 ask for a verdict"
curl -fsS http://127.0.0.1:8321/judge -H 'Content-Type: application/json' -d '{
  "task": "hieval-qs",
  "question": "who built the lighthouse of Torvane",
  "references": ["Maren Oldigast", "M. Oldigast"],
  "reference_mode": "any",
  "response": "The lighthouse of Torvane was built by Joris Pellwin in 1874."
}' | python -m json.tool

echo "== 6/7 $steps steps of error analysis on drawn charts, from the shipped quick-scoring judge"
custos prep charts --rows 260 --val 40 --cal 0 --test 0 --seed 0 --out "$out/charts"
accelerate launch train/hieval_stage2.py --config recipes/embedded/demo_ea.yaml optim.max_steps="$steps"

echo "== 7/7 draw a chart and name the error in a response to it"
custos prep twins --rows 2 --seed 1 --forms all --out "$out/drawn"
custos grade --judge embedded-ea --in "$out/drawn/twins.jsonl" --out "$out/drawn/verdicts.jsonl"
python - "$out/drawn" <<'PYTHON'
import json, sys
from pathlib import Path
folder = Path(sys.argv[1])
row, verdict = (
    json.loads((folder / name).read_text(encoding="utf-8").splitlines()[0])
    for name in ("twins.jsonl", "verdicts.jsonl")
)
print(f"picture   {folder / row['images'][0]} ({row['metadata']['caption']})")
print(f"question  {row['question']}  (answer: {', '.join(row['references'])})")
print(f"response  {row['responses'][0]!r}")
print(f"true by construction: {row['label']}")
named = "; ".join(filter(None, (verdict["label"], verdict.get("error_type"))))
print(f"verdict: {named} ({verdict['confidence']:.2f})")
print("Given by the shipped weights in judges/embedded-ea. The steps above, in runs/demo/ea, show how")
print("it was trained; they are too few to judge by.")
PYTHON
