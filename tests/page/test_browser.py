"""The page in a browser, where there is one: its own script runs, and no other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from parsed import page_of
from shop import shop_rows

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--dump-dom",
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"),
    reason="no Chromium here (Debian: apt-get install chromium)",
)


def opened(page: str, place: Path, fragment: str = "") -> str:
    """The page's elements after a browser has read it and run what it would run."""
    file = place / "page.html"
    file.write_text(page, "utf-8")
    command = (str(CHROMIUM), *OPTIONS, f"--user-data-dir={place / 'profile'}", file.as_uri() + fragment)
    return subprocess.run(command, capture_output=True, check=True, timeout=50).stdout.decode()


def test_its_script_runs_and_goes_to_the_step_that_is_named(tmp_path: Path) -> None:
    read = opened(page_of(shop_rows()), tmp_path, "#n28")
    assert '<form class="tools js">' in read  # it was hidden
    assert re.search(r'<tr id="n28"[^>]*aria-current="step"', read)


def test_no_other_script_runs_even_where_something_was_not_escaped(tmp_path: Path) -> None:
    forged = "<script>document.title = 'forged'</script><img src=x onerror=\"document.title = 'forged'\">"
    page = page_of(shop_rows()).replace("</main>", forged + "</main>")
    read = opened(page, tmp_path)
    assert '<form class="tools js">' in read
    assert "<title>forged</title>" not in read
