"""Writes data with pictures and sounds into a folder, and a pipeline for it: files that are there, and others that are not to be shown."""

import math
import struct
import sys
import wave
import zlib
from pathlib import Path

folder = Path(sys.argv[1])
(folder / "files").mkdir(parents=True)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture(name: str, colour: tuple[int, int, int]) -> str:
    """A square of one colour."""
    rows = (b"\0" + bytes(colour) * 16) * 16
    header = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    (folder / name).write_bytes(b"\x89PNG\r\n\x1a\n" + parts)
    return name


def sound(name: str, pitch: float) -> str:
    """Half a second."""
    with wave.open(str(folder / name), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<h", int(8000 * math.sin(pitch * at))) for at in range(4000)))
    return name


(folder / "files" / "outside.png").symlink_to("/etc/passwd")
drawing = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="https://example.org/y.png"/></svg>'
(folder / "files" / "drawing.svg").write_text(drawing)
odd = {
    0: "https://example.org/x.png",
    1: "//example.org/x.png",
    2: "files/gone.png",
    3: "files/outside.png",
    4: "/dev/zero",
    5: "",
    6: picture("files/a b#%?&'é.png", (250, 200, 0)),
    7: "files/drawing.svg",
}
lines = ["d0,d1,image,audio"]
for at in range(12):
    image = odd.get(at) if at in odd else picture(f"files/{at}.png", (200, 20 * at, 40))
    audio = sound(f"files/{at}.wav", 0.1 + 0.1 * (at % 2))
    lines.append(f"{at % 2 * 9 + at / 10},{at / 20},\"{image}\",{audio}")
(folder / "media.csv").write_text("\n".join(lines) + "\n")
(folder / "media.toml").write_text(
    'name = "media"\ndegree = 1\n[[data]]\nname = "d"\nloader = "csv"\npath = "media.csv"\n'
    'columns = { embedding = "d*" }\n[[clusterer]]\nuse = "kmeans"\nparams = { k = 2 }\n'
)
