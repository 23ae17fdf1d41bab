"""The page on testing says what is true: its examples are tests that pass, what it counts and names is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from talkfold.testing.misbehaving import MISBEHAVING

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_its_examples_are_tests_that_pass(tmp_path: Path) -> None:
    assert len(EXAMPLES) == 7
    for number, code in enumerate(EXAMPLES):
        (tmp_path / f"test_example_{number}.py").write_text(code, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n", encoding="utf-8"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-W",
        "error",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
    ]
    ran = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-1_000:]
    for number in range(len(EXAMPLES)):
        assert not re.search(rf"test_example_{number}\.py: no tests", ran.stdout)
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) > 100


def test_its_count_is_about_right() -> None:
    assert "more than ninety adapters" in PAGE
    assert 90 < len(MISBEHAVING) < 100


NAMES = re.findall(r"^\| .* \| `(\w+)` \| ", PAGE, re.MULTILINE)


def test_it_names_all_that_there_is() -> None:
    modules = {path.stem for path in (ROOT / "src" / "talkfold" / "testing").iterdir() if path.stem[0] not in "_."}
    assert set(NAMES) == modules
