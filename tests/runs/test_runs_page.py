"""The page on live runs: its example runs as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")


def test_its_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / "chat.db").exists()
