# SPDX-License-Identifier: Apache-2.0
"""Fail where a page of the built site would load something from the net.

    docs/site/check_site.py build/site

Links that a reader may follow are fine; scripts, styles, fonts and pictures are not.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# What a browser fetches by itself when it shows a page.
FETCHED = {
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src",
    "video": "src", "audio": "src", "embed": "src", "object": "data",
}  # fmt: skip
ABROAD = re.compile(r"(?:https?:)?//", re.I)
IN_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^)'\"\s]+)", re.I)


class Page(HTMLParser):
    """Collects what a page would load from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        at = values.get(FETCHED.get(tag, "")) or ""
        is_fetched = tag != "link" or values.get("rel") not in ("canonical", "license")
        if is_fetched and ABROAD.match(at):
            self.found.append(f"<{tag}> {at}")
        self.found += IN_STYLE.findall(values.get("style") or "")


def findings(site: Path) -> list[str]:
    found = []
    for file in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(file.read_text(encoding="utf-8"))
        found += [f"{file}: {what}" for what in page.found]
    for file in sorted(site.rglob("*.css")):
        found += [f"{file}: {what}" for what in IN_STYLE.findall(file.read_text(encoding="utf-8"))]
    return found


def main() -> int:
    site = Path(sys.argv[1])
    found = findings(site)
    if not (site / "searchindex.js").is_file():
        found.append(f"{site}: there is no index to search in")
    for what in found:
        print(f"loaded from the net: {what}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
