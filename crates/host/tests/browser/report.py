"""Clicks through report pages in Chromium. Arguments: a page with truth, a page without, a page with pictures and sounds, and a folder for
screenshots if wanted."""

import sys
from pathlib import Path

from axe_playwright_python import sync_playwright as axe_package
from playwright.sync_api import Page, sync_playwright

AXE = (Path(axe_package.__file__).parent / "axe.min.js").read_text()
LABELLED, UNLABELLED, MEDIA = (Path(path).resolve() for path in sys.argv[1:4])
SHOTS = Path(sys.argv[4]) if len(sys.argv) > 4 else None

complaints: list[str] = []


def check(holds: bool, what: str) -> None:
    if not holds:
        complaints.append(what)
        print(f"FAILED: {what}")


def opened(context, path: Path, beside: str = "-") -> Page:
    """The page, watched: it must neither complain nor ask for anything but files whose addresses begin as `beside`."""
    page = context.new_page()
    page.on("console", lambda message: check(message.type not in ("error", "warning"), f"console: {message.text}"))
    page.on("pageerror", lambda error: check(False, f"script: {error}"))
    page.on("request", lambda request: check(request.url == path.as_uri() or request.url.startswith(beside), f"request of {request.url}"))
    page.goto(path.as_uri())
    return page


def accessible(page: Page, when: str) -> None:
    # The page's own policy lets no other script in; a debugger may.
    page.evaluate(AXE)
    for finding in page.evaluate("axe.run()")["violations"]:
        nodes = [node["html"][:120] for node in finding["nodes"][:3]]
        check(finding["impact"] not in ("serious", "critical"), f"axe, {when}: {finding['id']}: {finding['help']} {nodes}")


def shot(page: Page, name: str) -> None:
    if SHOTS:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}.png", full_page=True)


def fits(page: Page, when: str) -> None:
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    check(width[0] <= width[1], f"{when}: the page is {width[0]} px wide where there are {width[1]}")


def pixels(page: Page, canvas: int) -> str:
    return page.locator("canvas.points").nth(canvas).evaluate("canvas => canvas.toDataURL()")


def clicks(page: Page) -> None:
    nodes, cells = page.locator(".graph .node"), page.locator(".matrix td button")
    status = page.locator("[role=status]")
    # A number in the first confusion table: examples light up in the pictures, in the graphs and in all tables.
    before = [pixels(page, at) for at in (0, 1, 2)]
    cells.first.click()
    check(all(pixels(page, at) != before[at] for at in (0, 1, 2)), "a click in a table changes every picture")
    check(page.locator(".matrix .lit").count() > 1, "a click in a table lights its own cell and others")
    check(page.locator(".examples tbody tr").count() > 0, "a click in a table lists examples")
    page.keyboard.press("Escape")
    check(pixels(page, 1) == before[1] and page.locator(".lit").count() == 0, "Escape takes the light away")
    # A node of the second graph, which is the first method's.
    node = page.locator("figure:not(.truth) .graph .node").first
    node.click()
    check(node.get_attribute("aria-pressed") == "true" and "CKM: cluster" in status.inner_text(), "a node can be pressed")
    check(page.locator(".matrix .lit").count() > 0, "a node lights columns of tables")
    # Pointing lights, and going away puts out.
    page.keyboard.press("Escape")
    nodes.nth(3).hover()
    check(page.locator(".lit").count() > 0, "pointing at a node lights up")
    page.mouse.move(1, 1)
    check(page.locator(".lit").count() == 0, "going away puts out")


def lasso(page: Page) -> None:
    canvas = page.locator("canvas.points").nth(1)
    canvas.evaluate("canvas => canvas.scrollIntoView({ block: 'center', behavior: 'instant' })")
    box = canvas.bounding_box()
    corners = [(0.02, 0.02), (0.98, 0.02), (0.98, 0.98), (0.02, 0.98), (0.02, 0.03)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
    head = page.locator(".examples thead").inner_text()
    check(all(name in head for name in ("picture", "id", "truth", "CKM", "distance", "margin")), f"the columns are {head!r}")
    check("150 examples inside the lasso" in page.locator("[role=status]").inner_text(), "the lasso holds all examples")
    margins = lambda: [float(text) for text in page.locator(".examples tbody td:last-child").all_inner_texts() if text != "–"]
    check(margins() == sorted(margins()), "examples come by their margin, the least clear first")
    page.locator("[data-sort=margin]").click()
    check(margins() == sorted(margins(), reverse=True), "another click turns the order")
    check(page.evaluate("document.activeElement.dataset.sort") == "margin", "the focus stays where it was")
    rows = page.locator(".examples tbody tr")
    few = rows.count()
    page.locator(".more").click()
    check(rows.count() > few, "there are more")
    # A point that is clicked picks its cluster.
    page.keyboard.press("Escape")
    canvas.evaluate("canvas => canvas.scrollIntoView({ block: 'center', behavior: 'instant' })")
    point = canvas.evaluate("""canvas => {
        const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        for (let at = 3; at < data.length; at += 4) if (data[at] > 200) return [(at >> 2) % width / width, Math.floor((at >> 2) / width) / width];
    }""")
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + point[0] * box["width"], box["y"] + point[1] * box["height"])
    check("CKM: cluster" in page.locator("[role=status]").inner_text(), "a click on a point picks its cluster")


def choices(page: Page) -> None:
    trial = page.get_by_label("Trial", exact=True)
    before = pixels(page, 1)
    trial.focus()
    trial.select_option(label="trial 3")
    check(pixels(page, 1) != before, "another trial is another picture")
    check(page.evaluate("document.activeElement.dataset.key") == "trial", "the focus stays on the choice")
    count = page.locator("canvas.points").count()
    page.get_by_label("k-means", exact=True).uncheck()
    check(page.locator("canvas.points").count() == count - 1, "a method can be left out")
    page.get_by_label("Plane").select_option("both")
    check(page.locator("canvas.points").count() == 2 * (count - 1), "both planes stand side by side")
    page.get_by_label("Plane").select_option("own")
    trial.select_option("-1")
    check(page.locator(".figures.tiny canvas").count() == 10 * (count - 1), "all trials stand side by side")
    fits(page, "all trials")
    shot(page, "trials")
    page.get_by_role("button", name="trial 7").first.click()
    check(trial.input_value() == "7", "a trial can be chosen by its picture")


def keyboard(page: Page) -> None:
    page.locator(".graph .node[tabindex='0']").nth(1).focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowDown")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    check(first != second, "arrow keys go through the nodes")
    page.keyboard.press("Enter")
    check(second in page.locator("[role=status]").inner_text(), "Enter picks the node")
    page.keyboard.press("Tab")
    check(page.evaluate("document.activeElement.getAttribute('aria-label')") != second, "Tab leaves the graph")
    page.get_by_role("button", name="List all examples").focus()
    page.keyboard.press("Enter")
    check(page.locator(".examples tbody tr").count() > 0, "all examples can be listed without a mouse")


def media(page: Page) -> None:
    page.get_by_role("button", name="List all examples").click()
    rows = page.locator(".examples tbody tr")
    check(rows.count() == 12 and rows.locator("audio").count() == 12, "every example has a sound")
    images = rows.locator("img")
    for at in range(images.count()):
        images.nth(at).scroll_into_view_if_needed()
    page.wait_for_function("[...document.querySelectorAll('.examples img')].every(image => image.complete)")
    shown = images.evaluate_all("images => images.map(image => [decodeURIComponent(image.src).split('/').pop(), image.naturalWidth])")
    there = [f"{at}.png" for at in range(8, 12)] + ["a b#%?&'é.png", "drawing.svg"]
    check(sorted(name for name, _ in shown) == sorted(there), f"the pictures are {shown}")
    check(all(width > 0 for _, width in shown), f"all pictures can be seen: {shown}")
    seconds = rows.locator("audio").first.evaluate("async audio => { await audio.play(); return audio.duration; }")
    check(seconds == 0.5, f"a sound of {seconds} s was played")
    notes = " ".join(page.locator("p.note").all_inner_texts())
    check("Column image: 5 of 12 are not shown: https://example.org/x.png is an address" in notes, f"what is not shown is said: {notes}")
    accessible(page, "pictures and sounds")
    shot(page, "media")


def without_script(browser, path: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(path.as_uri())
    check(page.locator("svg.scatter").first.is_visible(), "without a script there are pictures")
    check(not page.locator("#explore").is_visible(), "without a script nothing is offered that needs one")


with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    for scheme, width in [("light", 1280), ("dark", 400)]:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for path in (LABELLED, UNLABELLED):
            page = opened(context, path)
            when = f"{scheme}, {width} px, {path.parent.name}"
            fits(page, when)
            page.locator(".graph .node").nth(2).click()
            fits(page, f"{when}, picked")
            accessible(page, f"{when}, picked")
            shot(page, f"{path.parent.name}-{scheme}-{width}")
            # What is seen without a script.
            page.evaluate("document.getElementById('static').hidden = false; document.getElementById('explore').hidden = true")
            fits(page, f"{when}, static")
            accessible(page, f"{when}, static")
            page.close()
    page = opened(browser.new_context(viewport={"width": 1280, "height": 900}), LABELLED)
    clicks(page)
    lasso(page)
    keyboard(page)
    choices(page)
    page = opened(browser.new_context(viewport={"width": 1280, "height": 900}), UNLABELLED)
    check(page.locator("main > section").first.get_attribute("id") == "found", "data without labels opens with what was found")
    check(page.locator("main b, main i").filter(has_text="unlabelled").count() == 0, "names are no markup")
    check(page.get_by_text("<i>CKM</i>").count() > 0, "names are shown as they are")
    media(opened(browser.new_context(viewport={"width": 1280, "height": 900}), MEDIA, (MEDIA.parents[1] / "files").as_uri()))
    without_script(browser, LABELLED)
    page = opened(browser.new_context(), LABELLED)
    page.emulate_media(media="print")
    check(not page.locator(".controls").is_visible() and page.locator("canvas.points").first.is_visible(), "pictures are printed, choices are not")
    browser.close()

if complaints:
    sys.exit(f"report: {len(complaints)} complaints")
print("report: looked at in Chromium, nothing to complain of")
