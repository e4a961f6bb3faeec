"""Photographs pages of the built site, in light and dark and at two widths, and reports what a program can
see of their faults.

    mkdocs build -d build/site
    pip install playwright && playwright install chromium      # or --browser /usr/bin/chromium
    python tools/screenshots.py build/site OUT guide/derivatives reference/losses

Without pages, all of them. A fault is a page that scrolls sideways, a picture that is missing, text with
less than four times the contrast of its ground, text that is cut off where nothing scrolls, or a formula that
is wider than the page. The rest takes eyes: look at the pictures.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import threading
from pathlib import Path
from typing import Any

WIDTHS = (1280, 390)

FAULTS = """() => {
  const faults = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth + 1) faults.push(`scrolls sideways: ${root.scrollWidth}`);
  for (const picture of document.images)
    if (!picture.naturalWidth) faults.push(`no picture ${picture.src}`);
  for (const part of document.querySelectorAll('.formula'))
    if (part.scrollWidth > part.clientWidth + 1) faults.push(`wide formula: ${part.textContent}`);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = (c, ground) => [0, 1, 2].map((i) => c[i] * (c[3] ?? 1) + ground[i] * (1 - (c[3] ?? 1)));
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const c = numbers(getComputedStyle(e).backgroundColor);
      layers.unshift(c);
      if ((c[3] ?? 1) === 1) break;
    }
    return layers.reduce((below, c) => over(c, below), [255, 255, 255]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const seen = {};
  const texts = document.createNodeIterator(document.querySelector('.md-content'), NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode()); ) {
    const e = node.parentElement;
    if (!node.textContent.trim() || !e.offsetParent || e.classList.contains('headerlink')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const right = range.getBoundingClientRect().right;
    for (let box = e; box !== root; box = box.parentElement) {
      const overflow = getComputedStyle(box).overflowX;
      if (overflow === 'auto' || overflow === 'scroll') break;
      const edge = box === document.body ? root.clientWidth : box.getBoundingClientRect().right;
      if ((overflow === 'hidden' || box === document.body) && right > edge + 1)
        seen[`cut off: ${node.textContent.trim().slice(0, 60)}`] = 1;
    }
    const below = ground(e), text = over(numbers(getComputedStyle(e).color), below);
    const [a, b] = [light(text), light(below)].sort((x, y) => y - x), contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4) seen[`contrast ${contrast.toFixed(1)} of ${e.tagName}.${e.className}`] = 1;
  }
  return faults.concat(Object.keys(seen));
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def served(site: Path) -> str:
    """The address at which a thread serves the site."""
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def photograph(site: Path, out: Path, pages: list[str], browser: str | None) -> int:
    """Writes the pictures, prints the faults, and returns how many there are."""
    from playwright.sync_api import sync_playwright

    out.mkdir(parents=True, exist_ok=True)
    address, found = served(site), 0
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for width in WIDTHS:
                context = chromium.new_context(
                    viewport={"width": width, "height": 900},
                    color_scheme=scheme,
                    reduced_motion="reduce",
                )
                tab = context.new_page()
                for page in pages:
                    tab.goto(f"{address}{page}/" if page else address)
                    tab.wait_for_timeout(250)
                    name = page.replace("/", "_") or "home"
                    tab.screenshot(path=out / f"{name}-{width}-{scheme}.png", full_page=True)
                    for fault in tab.evaluate(FAULTS):
                        print(f"{page or 'home'}, {width}, {scheme}: {fault}")
                        found += 1
                context.close()
        chromium.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("site", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("pages", nargs="*", help="paths within the site; '' is the first page")
    parser.add_argument("--browser", help="the path of a Chromium")
    options = parser.parse_args()
    every = sorted(p.parent.relative_to(options.site) for p in options.site.rglob("index.html"))
    names = [path.as_posix().removeprefix(".") for path in every]
    pages = options.pages or names
    if unknown := set(pages) - set(names):
        parser.error(f"{options.site} has no page {', '.join(sorted(unknown))}")
    return 1 if photograph(options.site, options.out, pages, options.browser) else 0


if __name__ == "__main__":
    raise SystemExit(main())
