"""A stand-in for ReFrame in the soak: leaves the results of a night, or fails as planned."""

import json
import os
import signal
import sys
from pathlib import Path

plan = json.loads(Path("plan.json").read_text(encoding="utf-8"))
fault = plan["fault"]
for number, name in enumerate(plan["names"], start=1):
    print(f"[ RUN      ] ({number}/{len(plan['names'])}) {name}", flush=True)
stage = Path("stage", plan["session"])
stage.mkdir(parents=True)
(stage / "rfm_job.out").write_text("x" * 1000, encoding="utf-8")
if fault == "session killed":
    os.kill(os.getppid(), signal.SIGKILL)
if fault in ("session killed", "session hangs"):
    signal.alarm(600)
    signal.pause()  # time.sleep sometimes fails under libfaketime
if fault == "ReFrame fails":
    sys.exit("ERROR: failed to load configuration")
for path, text in plan["perflogs"].items():
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(text)
report = Path(plan["report"])
report.parent.mkdir(parents=True, exist_ok=True)
report.write_text(plan["content"], encoding="utf-8")
sys.exit(plan["status"])
