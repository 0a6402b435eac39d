"""Measures of a page in a browser; they return what is wrong, in words."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
SMALLEST: ViewportSize = {"width": 360, "height": 740}
TOO_BAD = ("serious", "critical")
MOST_OWN_BYTES = 100 * 1024
MOST_LAYOUT_SHIFT = 0.05
MOST_PRESSES = 250

# Layout shift while the page loaded, and bytes of our own styles and scripts.
WATCH_LOADING = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const shift of list.getEntries()) if (!shift.hadRecentInput) window.shifted += shift.value;
}).observe({ type: "layout-shift", buffered: true });
"""
OWN_BYTES = """
performance.getEntriesByType("resource")
  .filter((one) => /\\/static\\/(css|js|admin)\\//.test(one.name))
  .reduce((sum, one) => sum + one.decodedBodySize, 0)
"""
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
# Numbers everything that the Tab key should reach; of a group of radio buttons, one.
NUMBER_STOPS = """
() => {
  const wanted = "a[href], button:enabled, input:enabled:not([type=hidden]), select:enabled, textarea:enabled, " +
    "summary, [tabindex='0']";
  const groups = new Set();
  const stops = [];
  for (const part of document.querySelectorAll(wanted)) {
    if (!part.checkVisibility({ visibilityProperty: true }) || part.tabIndex < 0 || part.closest("[inert]")) continue;
    if (part.type === "radio") {
      const group = part.form?.elements[part.name];
      const checked = group instanceof RadioNodeList && [...group].some((one) => one.checked);
      if (checked ? !part.checked : groups.has(part.name)) continue;
      groups.add(part.name);
    }
    part.berthStop = stops.push(part.outerHTML.slice(0, 120)) - 1;
  }
  return stops;
}
"""
# Starts the walk at the top, even if the page put the focus elsewhere.
BEGIN = (
    "() => { document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex'); }"
)
# The focused element, and whether its focus ring can be seen: on itself or on its frame.
FOCUSED = """
() => {
  const part = document.activeElement;
  if (!part || part === document.body) return null;
  const ring = (one) => {
    const look = one && getComputedStyle(one);
    return look && look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 1;
  };
  const frames = [part, part.closest(".choice"), part.closest("summary"), part.closest("label")];
  const box = part.getBoundingClientRect();
  return {
    stop: part.berthStop ?? null,
    isSeen: frames.some(ring) && box.width > 0 && box.bottom > 0 && box.top < innerHeight,
    what: part.outerHTML.slice(0, 120),
  };
}
"""


def structure(page: Page) -> list[str]:
    """Check for one h1, a title and a language."""
    wrong = []
    headings = page.locator("h1").count()
    if headings != 1:
        wrong.append(f"{headings} h1")
    if not page.title().removesuffix("· Berth").strip():
        wrong.append("no title")
    if not page.locator("html").get_attribute("lang"):
        wrong.append("no language")
    return wrong


def faults(page: Page, rules: list[str] | None = None) -> list[str]:
    """Return the violations that axe calls serious or critical."""
    # Without a preload: axe would ask for what a style imports as if its address were relative to the page.
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = rules
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{fault['id']}: {node['html'][:160]}"
        for fault in found
        if fault["impact"] in TOO_BAD
        for node in fault["nodes"]
    ]


def overflow(page: Page) -> list[str]:
    """Return the elements wider than the window, if the page scrolls sideways."""
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= document.documentElement.clientWidth ? [] :
        ["wider than the window", ...[...document.querySelectorAll("body *")]
          .filter((one) => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
          .slice(0, 3).map((one) => one.outerHTML.slice(0, 120))]"""
    )
    return found


def loading(page: Page) -> list[str]:
    wrong = []
    shifted, own_bytes = page.evaluate("window.shifted"), page.evaluate(OWN_BYTES)
    if shifted > MOST_LAYOUT_SHIFT:
        wrong.append(f"moved while it loaded: {shifted:.3f}")
    if own_bytes > MOST_OWN_BYTES:
        wrong.append(f"{own_bytes} bytes of our own styles and scripts")
    return wrong


def keyboard(page: Page) -> list[str]:
    """Walk with the Tab key: it must reach everything, show the focus, and come to an end."""
    page.evaluate(BEGIN)
    stops: list[str] = page.evaluate(NUMBER_STOPS)
    missing = set(range(len(stops)))
    wrong = []
    for _press in range(MOST_PRESSES):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        missing.discard(focused["stop"])
        if not focused["isSeen"]:
            wrong.append(f"the focus cannot be seen: {focused['what']}")
    else:
        wrong.append(f"the Tab key does not come to the end in {MOST_PRESSES} presses")
    wrong += [f"not reached: {stops[number]}" for number in sorted(missing)[:5]]
    return wrong


def complaints(page: Page) -> list[str]:
    """Return a list that collects the browser's errors and warnings from now on."""
    found: list[str] = []
    page.on("console", lambda said: found.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    return found


def quiet_and_readable(page: Page) -> None:
    """Assert that the page has no faults, also in the dark and on a small phone."""
    usual = page.viewport_size
    assert usual is not None
    wrong = faults(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    wrong += faults(page, ["color-contrast"])
    page.set_viewport_size(SMALLEST)
    page.evaluate(TWO_FRAMES)  # charts take their new width in a frame
    wrong += overflow(page)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(usual)
    assert not wrong, wrong
