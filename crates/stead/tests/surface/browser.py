"""Reads pages in a Chromium without a window, by its driver: browser.py PAGES SCREENSHOTS AXE prints a line for each finding.

PAGES has a line for each page: its path, and what is tried with it. Only the protocols of the driver and of the browser are
spoken, with nothing but what Python brings along.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

WIDTHS = [390, 1280, 1920]
NARROW_AND_WIDE = [320, 390, 768, 1024, 1280, 1920]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
KEYS = {"Tab": 9, "Enter": 13}

OPEN = "document.querySelectorAll('details').forEach(each => each.open = true)"
STOPS = "[...document.querySelectorAll('a[href], summary, [tabindex=\"0\"]')]" \
        ".filter(each => each.tabIndex >= 0 && each.checkVisibility())"
FOCUS = f"""(() => {{
  const stop = document.activeElement, style = getComputedStyle(stop), box = stop.getBoundingClientRect();
  return {{at: {STOPS}.indexOf(stop), name: stop.outerHTML.slice(0, 80),
    seen: [style.outlineStyle !== 'none' && style.outlineWidth,
      stop.ownerSVGElement && getComputedStyle(stop.querySelector('rect')).strokeWidth].some(each => parseFloat(each) >= 2),
    inside: box.bottom > 0 && box.top < innerHeight}};
}})()"""


class Browser:
    def __init__(self, options):
        self.base = None
        with open(os.devnull, "wb") as nowhere:
            self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=nowhere, text=True)
        for line in self.driver.stdout:
            if found := re.search(r"started successfully on port (\d+)", line):
                self.base = f"http://127.0.0.1:{found[1]}/session"
                break
        asked = {"browserName": "chrome", "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
                 "goog:chromeOptions": {"args": ["--headless=new", "--no-sandbox", "--hide-scrollbars", *options]}}
        answer = self.ask("", {"capabilities": {"alwaysMatch": asked}})
        self.base += "/" + answer["sessionId"]

    def ask(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            sys.exit(f"{path}: {error.read().decode()[:600]}")

    def tell(self, command, **parameters):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def evaluate(self, expression):
        answer = self.tell("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{expression[:80]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key):
        for kind in ["rawKeyDown", "char", "keyUp"]:
            if kind != "char" or key == "Enter":
                text = {"text": "\r"} if kind == "char" else {}
                self.tell("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key], **text)

    def shape(self, width, height=900):
        self.tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, name):
        self.tell("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path, height=None):
        clip = {} if height is None else {"clip": {"x": 0, "y": 0, "width": height[0], "height": height[1], "scale": 1}}
        answer = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True, **clip)
        path.write_bytes(base64.b64decode(answer["data"]))

    def log(self, kind):
        return self.ask("/se/log", {"type": kind})

    def end(self):
        self.ask("", method="DELETE")
        self.driver.terminate()
        self.driver.wait()


def requests(browser, address):
    """The addresses that were asked for beside the page itself."""
    asked = []
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    return [each for each in asked if each.split("#")[0] != address]


def loads(browser, page, found):
    """Opens it, and says how long that takes and what else is asked for."""
    browser.log("performance")
    start = time.monotonic()
    browser.ask("/url", {"url": page.as_uri()})
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    took = time.monotonic() - start
    found += [f"asks for {each}" for each in requests(browser, page.as_uri())]
    found += [f"is reported: {each['message'][:300]}" for each in browser.log("browser")]
    print(f"figure {page.stem}: {page.stat().st_size} bytes, on the screen after {took * 1000:.0f} ms", file=sys.stderr)


def looks(browser, page, screenshots, found):
    """At each width nothing is wider than the window; pictures are kept in both schemes."""
    for width in NARROW_AND_WIDE:
        browser.shape(width)
        over = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
        if over > 0:
            found.append(f"is {over} px too wide at {width}")
        if width not in WIDTHS:
            continue
        for scheme in ["light", "dark"]:
            browser.scheme(scheme)
            height = min(browser.evaluate("document.documentElement.scrollHeight"), 4000)
            browser.picture(screenshots / f"{page.stem}-{width}-{scheme}.png", (width, height))


def is_accessible(browser, axe, found):
    """Asks axe, with everything unfolded, on a phone and on a desk, light and dark."""
    browser.evaluate(OPEN)
    browser.evaluate(axe + "; 0")
    for width, scheme in [(1280, "light"), (1280, "dark"), (390, "light")]:
        browser.shape(width)
        browser.scheme(scheme)
        question = f"axe.run(document, {{resultTypes: ['violations'], runOnly: {json.dumps(TAGS)}}})"
        short = ".then(all => all.violations.map(each => [each.id, each.help, each.nodes.length, each.nodes[0].html]))"
        for rule, text, count, example in browser.evaluate(question + short):
            found.append(f"axe {rule} at {width} {scheme}: {text}, {count} times: {example[:200]}")
        if browser.evaluate("axe.run(document, {runOnly: ['wcag2a']}).then(all => all.passes.length)") < 5:
            found.append("axe found next to nothing to look at")


def has_keys(browser, found):
    """Tab goes through everything that can be used, in order and visibly; Enter opens what is folded."""
    browser.shape(1280)
    browser.scheme("light")
    browser.evaluate("document.querySelectorAll('details').forEach(each => each.open = false); document.activeElement.blur(); scrollTo(0, 0)")
    stops = browser.evaluate(STOPS + ".length")
    opened = 0
    for step in range(min(stops, 60)):
        browser.press("Tab")
        focus = browser.evaluate(FOCUS)
        if focus["at"] != step + opened:
            found.append(f"key {step} comes to {focus['at']}, {focus['name']}")
            return
        if not focus["seen"] or not focus["inside"]:
            found.append(f"the focus cannot be seen at {focus['name']}")
        if focus["name"].startswith("<summary"):
            before = browser.evaluate("document.activeElement.parentElement.open")
            browser.press("Enter")
            if browser.evaluate("document.activeElement.parentElement.open") == before:
                found.append(f"Enter does not open {focus['name']}")
            browser.press("Enter")
    if stops < 5:
        found.append(f"only {stops} places for a key")


def is_inert(browser, page, found):
    """Without its content policy, too, nothing runs and nothing is asked for."""
    browser.tell("Page.setBypassCSP", enabled=True)
    browser.tell("Page.addScriptToEvaluateOnNewDocument",
                 source="window.ran = []; alert = text => ran.push(text); addEventListener('error', () => ran.push('error'), true)")
    browser.log("performance")
    browser.ask("/url", {"url": page.as_uri()})
    browser.evaluate(OPEN)
    for event in ["mouseover", "load", "error", "click"]:
        browser.evaluate(f"document.querySelectorAll('*:not(a)').forEach(each => each.dispatchEvent(new Event('{event}')))")
    found += [f"runs {each}" for each in browser.evaluate("ran.filter(each => each !== 'error')")]
    found += [f"asks for {each}" for each in requests(browser, page.as_uri())]
    script = "[...document.querySelectorAll('*')].filter(each => each.localName === 'script' || each.localName === 'img' " \
             "|| [...each.attributes].some(one => one.name.startsWith('on') || /javascript:/i.test(one.value))).length"
    if count := browser.evaluate(script):
        found.append(f"has {count} elements that could run something")
    browser.tell("Page.setBypassCSP", enabled=False)


def main():
    pages, screenshots, axe = sys.argv[1:4]
    screenshots = pathlib.Path(screenshots)
    screenshots.mkdir(parents=True, exist_ok=True)
    axe = pathlib.Path(axe).read_text(encoding="utf-8")
    wrong = 0
    for line in pathlib.Path(pages).read_text(encoding="utf-8").splitlines():
        path, *tried = line.split()
        page, found, browser = pathlib.Path(path), [], Browser([])
        browser.shape(1280)
        browser.scheme("light")
        loads(browser, page, found)
        looks(browser, page, screenshots, found)
        is_accessible(browser, axe, found)
        has_keys(browser, found)
        if "inert" in tried:
            is_inert(browser, page, found)
        browser.end()
        for each in found:
            print(f"{page.stem}: {each}")
        wrong += len(found)
    print(f"looked at, {wrong} findings")


main()
