"""A report as a browser sees it. Called by bench/browser with the browser's path and the page."""

import pathlib
import sys

from playwright.sync_api import sync_playwright

chromium, page_path = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
url = page_path.as_uri()
failed = []


def expect(holds, text):
    print(("ok    " if holds else "FAILED"), text)
    if not holds:
        failed.append(text)


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
    for name, width, scheme, script in [
        ("light", 1280, "light", True),
        ("dark", 1280, "dark", True),
        ("narrow", 400, "light", True),
        ("no-script", 1280, "light", False),
    ]:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=script
        )
        page = context.new_page()
        errors, requests = [], []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda line: errors.append(line.text) if line.type in ("error", "warning") else None)
        page.on("request", lambda request: requests.append(request.url))
        page.goto(url)
        page.wait_for_timeout(200)
        expect(not errors, f"{name}: no errors {errors}")
        expect(requests == [url], f"{name}: nothing is requested but the page {requests[1:]}")
        if script:
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            expect(overflow <= 0, f"{name}: nothing is wider than the window ({overflow} px)")
            empty = page.evaluate("[...document.querySelectorAll('svg')].filter(s => s.checkVisibility() && s.getBoundingClientRect().width < 40).length")
            expect(empty == 0, f"{name}: every figure has a size")
        tabs = page.locator(".tabs label")
        for at in range(tabs.count()):
            tabs.nth(at).click()
            shown = [index for index in range(tabs.count()) if page.locator(f"#panel-{index}").is_visible()]
            expect(shown == [at], f"{name}: tab {at} shows panel {shown}")
        if tabs.count():
            tabs.nth(0).click()
        # A narrow page is longer than viewers of pictures like.
        clip = {"x": 0, "y": 0, "width": width, "height": 6000} if name == "narrow" else None
        page.screenshot(path=page_path.with_name(f"{name}.png"), full_page=True, clip=clip)
        if name == "light":
            page.pdf(path=page_path.with_name("print.pdf"), format="A4")
            expect(page_path.with_name("print.pdf").stat().st_size > 10_000, "print: a PDF is made")
        context.close()
    browser.close()

size = page_path.stat().st_size
expect(size < 3_000_000, f"the page has {size / 1e6:.2f} MB, less than 3")
print(f"{len(failed)} failed; screenshots in {page_path.parent}")
sys.exit(bool(failed))
