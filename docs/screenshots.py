"""Takes the pictures of README: the first screens of the demo's reports. ``make screenshots``."""

import shutil
import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from laststand.emulator.report.run_files import read_reported_run

IMAGES: Final = Path(__file__).parent / "images"
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
_WIDTH: Final = 1440
_HEIGHT: Final = 880


def browser_program() -> str | None:
    """Returns the browser of this machine; ``None`` if there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name)) is not None), None)


def main(store: Path) -> None:
    """Takes a picture of the report of each run below a directory, named for its era."""
    pages = sorted(path for path in store.rglob("report.html") if not path.parent.is_symlink())
    if not pages:
        sys.exit(f"no report.html below {store}")
    program = browser_program()
    if program is None:
        sys.exit(f"no browser: none of {', '.join(PROGRAMS)} is installed")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for page in pages:
            tab = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light")
            tab.goto(page.as_uri())
            era = read_reported_run(page.parent).verdict.era or "unnamed"
            tab.screenshot(path=IMAGES / f"report-{era}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
