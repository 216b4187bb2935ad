"""Check and run the bundle that this file is in. Needs nothing but Python 3.11 or newer.

Exit status 0: every file has its digest, every program does what its role says. 1: not so.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECONDS = 60


def problems_of_files() -> Iterator[str]:
    """Files that are missing or unlisted, or whose bytes are not those that SHA256SUMS lists."""
    lines = (HERE / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: wanted for wanted, _, name in (line.partition("  ") for line in lines)}
    for file in sorted(HERE.iterdir()):
        if file.is_file() and file.name not in sums and file.name != "SHA256SUMS":
            yield f"{file.name} is not listed in SHA256SUMS"
    for name, wanted in sums.items():
        file = HERE / name
        if not file.is_file():
            yield f"{name} is missing"
        elif hashlib.sha256(file.read_bytes()).hexdigest() != wanted:
            yield f"{name} has another digest than SHA256SUMS says"


def problems_of_programs() -> Iterator[str]:
    """Programs whose digest or behaviour is not what case.json and their role say."""
    case = json.loads((HERE / "case.json").read_text(encoding="utf-8"))
    labels = [check["label"] for check in case["checks"]]
    for role, program in sorted(case["programs"].items()):
        file = HERE / f"{role}.py"
        if hashlib.sha256(file.read_bytes()).hexdigest() != program["sha256"]:
            yield f"{role}.py has another digest than case.json says"
            continue
        command = [sys.executable, "-s", "-B", str(file)]
        ran = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        wanted = 0 if role == "repair" else 1
        try:
            observations = json.loads(ran.stdout)["observations"]
        except (ValueError, KeyError):
            yield f"{role}.py printed no observations"
            continue
        passed = sum(observation["passed"] for observation in observations)
        print(f"{role}: {passed} of {len(observations)} fixtures pass, exit {ran.returncode}")
        if ran.returncode != wanted:
            yield f"{role}.py exits {ran.returncode}, expected {wanted}"
        if [observation["check"] for observation in observations] != labels:
            yield f"{role}.py reports other fixtures than case.json lists"


def main() -> None:
    """Print what was found and exit."""
    problems = list(problems_of_files()) or list(problems_of_programs())
    for problem in problems:
        print(f"problem: {problem}")
    raise SystemExit(1 if problems else 0)


if __name__ == "__main__":
    main()
