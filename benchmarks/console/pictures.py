"""Pictures of the main pages for the documentation, made from the pages themselves."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.console.browser import Chromium
from benchmarks.console.pages import ShownPage
from benchmarks.console.world import ConsoleServer

WIDTH, PHONE = 1280, 390
MOST_BYTES = 700_000
"""Of all pictures together."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: the page that is on it, and how it is looked at.

    Args:
        page: The name of the page.
        height: How much of the page is on it.
        width: Of the window.
        theme: Of the system.
    """

    page: str
    height: int
    width: int = WIDTH
    theme: Literal["light", "dark"] = "light"

    @property
    def file(self) -> str:
        """Its name: that of the page, with what is unusual about it."""
        more = "-phone" if self.width == PHONE else "-dark" if self.theme == "dark" else ""
        return f"{self.page}{more}.png"


PICTURES = (
    Picture("runs", 560),
    Picture("run", 700),
    Picture("run-flow", 760),
    Picture("approval", 620),
    Picture("ask-findings", 720),
    Picture("pattern", 640),
    Picture("architecture", 600),
    Picture("policy-call", 700),
    Picture("operations", 600),
    Picture("run-flow", 760, theme="dark"),
    Picture("approval", 760, width=PHONE),
)
PALETTE = r"""
async (png) => {
  const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const each of pixels) counts.set(each, (counts.get(each) || 0) + 1);
  const kept = [...counts].sort((one, two) => two[1] - one[1]).slice(0, 256).map(([colour]) => colour);
  const parts = (colour) => [colour & 255, (colour >> 8) & 255, (colour >> 16) & 255];
  const palette = kept.map(parts);
  const places = new Map(kept.map((colour, place) => [colour, place]));
  const nearest = (colour) => {
    const [red, green, blue] = parts(colour);
    let best = 0, least = Infinity;
    palette.forEach(([r, g, b], place) => {
      const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
      if (distance < least) [best, least] = [place, distance];
    });
    return best;
  };
  const indices = new Uint8Array(pixels.length);
  pixels.forEach((colour, at) => {
    if (!places.has(colour)) places.set(colour, nearest(colour));
    indices[at] = places.get(colour);
  });
  let binary = "";
  for (let at = 0; at < indices.length; at += 8192) binary += String.fromCharCode(...indices.subarray(at, at + 8192));
  return [width, height, palette, btoa(binary)];
}
"""
"""Reads a picture, and returns it with 256 colours: the most frequent ones, and for others the nearest of them."""


def take_pictures(chromium: Chromium, server: ConsoleServer, pages: Sequence[ShownPage], folder: Path) -> list[Path]:
    """Write all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {page.name: page for page in pages}
    made: list[Path] = []
    for each in PICTURES:
        shown = by_name[each.page]
        with chromium.visit(
            server, shown.user, width=each.width, height=each.height, theme=each.theme, still=True
        ) as visitor:
            page = visitor.page
            shown.open(page, server.address)
            page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")
            taken = page.screenshot(animations="disabled", caret="hide")
            # A page without a policy of its own, which may read the picture.
            page.goto("about:blank")
            width, height, palette, indices = page.evaluate(PALETTE, base64.b64encode(taken).decode())
            file = folder / each.file
            file.write_bytes(palette_png(width, height, palette, base64.b64decode(indices)))
            made.append(file)
    return made


def palette_png(width: int, height: int, palette: Sequence[Sequence[int]], indices: bytes) -> bytes:
    """A PNG file with at most 256 colours."""
    rows = b"".join(b"\0" + indices[start : start + width] for start in range(0, width * height, width))
    colours = bytes(part for colour in palette for part in colour)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", colours), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
