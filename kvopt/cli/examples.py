"""Examples in the help of each command; the tests run them in this order, in one folder."""

from __future__ import annotations

EXAMPLES = {
    "generate": (
        "kvopt generate arrival-1 --n 8 --seed 3 -o a.json",
        "kvopt generate two-point -p l=2 -p u=9 --memory 20 -o b.json",
    ),
    "solve": (
        "kvopt solve a.json --time-limit 60 -o best.json",
        "kvopt generate uniform --n 6 -o - | kvopt solve - --time-limit 60",
    ),
    "bound": ("kvopt bound a.json --method volume",),
    "run": (
        "kvopt run a.json --policy mc-sf --policy alpha-protect:alpha=0.2",
        "kvopt run a.json --policy svf --seconds --batch-time llama-3-8b@h100",
    ),
    "certify": (
        "kvopt certify a.json --policy mc-sf --time-limit 60 -o a.cert.json",
        "kvopt certify a.json --policy vllm-fcfs:block=1 --time-limit 20 -o vllm.cert.json",
    ),
    "verify": ("kvopt verify a.cert.json",),
    "policies": ("kvopt policies",),
    "check": ("kvopt check a.json best.json",),
    "export": (
        "kvopt export a.json -o a.mps.gz",
        "kvopt export a.json --formulation relaxed --format lp -o -",
    ),
    "plot": (
        "kvopt plot a.json --schedule best.json -o best.svg",
        "kvopt plot a.json --policy mc-sf -o mc-sf.png",
    ),
    "reduce": ("kvopt reduce three-partition --target 40 11 11 12 11 17 18",),
    "hunt": ("kvopt hunt --policy mc-sf --n 4 --memory 4 -o worst.cert.json",),
    "info": ("kvopt info", "kvopt info --params"),
    "import": ("kvopt import samples/chat.csv --format azure --memory 2048 -o chat.json",),
    "import-run": ("kvopt import-run samples/vllm.jsonl -o run.json",),
    "capacity": ("kvopt capacity --model mistral-7b --gpu a10-24gb --gpus 1",),
    "fleet": (
        "kvopt fleet a.json --match fcfs --router round-robin --workers 3 -t 2",
        "kvopt fleet a.json --target mean=22 --counts 1..4 -t 2 --out fleets",
    ),
    "batch-time": (
        "kvopt batch-time samples/batches.csv --kv-ns 40 -o mine.json",
        "kvopt batch-time llama-3-8b@h100",
    ),
    "study": ("kvopt study smoke --describe", "kvopt study smoke --limit 1 --out smoke"),
    "report": ("kvopt report smoke",),
    "theory": ("kvopt theory theorem-6.2",),
    "sweep": ("kvopt sweep a.json --alpha 0.2:0.4:0.05",),
    "warmup": ("kvopt warmup",),
}
"""By the name of the command."""
