# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Records terminal sessions: a program runs on a pseudo-terminal, and its screens become an SVG file."""
import dataclasses
import fcntl
import html
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pyte

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 17, 12       # of a 14 pixel monospaced font
COLOURS = {"default": "#d6deeb", "black": "#011627", "red": "#ef5350", "green": "#22da6e", "brown": "#c5e478", "blue": "#82aaff", "magenta": "#c792ea",
           "cyan": "#21c7a8", "white": "#ffffff"}
PAPER = "#011627"
# Frames that are closer together than this are merged, and pauses are shortened to at most that, in seconds.
LEAST_STEP, MOST_PAUSE = 0.25, 1.5
LAST_FRAME = 4.0
MOST_FRAMES = 120
LICENCE = "<!-- SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB -->\n"


@dataclasses.dataclass
class Recording:
    """The output of a program with time stamps: (seconds since the start, bytes)."""
    rows: int
    columns: int
    output: list

    def screen(self):
        """Returns the contents of the terminal at the end."""
        screen = pyte.Screen(self.columns, self.rows)
        stream = pyte.ByteStream(screen)
        for _, data in self.output:
            stream.feed(data)
        return screen

    def asciicast(self):
        """Returns the recording in the format of asciinema (asciicast, version 2)."""
        lines = [{"version": 2, "width": self.columns, "height": self.rows}]
        lines += [[round(when, 3), "o", data.decode(errors="replace")] for when, data in self.output]
        return "".join(json.dumps(line) + "\n" for line in lines)

    def frames(self):
        """Returns [(seconds, screen)] with the duration of each screen: changes within LEAST_STEP are one frame."""
        screen = pyte.Screen(self.columns, self.rows)
        stream = pyte.ByteStream(screen)
        frames = []
        for number, (when, data) in enumerate(self.output):
            stream.feed(data)
            pause = self.output[number + 1][0] - when if number + 1 < len(self.output) else LAST_FRAME
            if pause >= LEAST_STEP:
                frames.append((min(pause, MOST_PAUSE) if number + 1 < len(self.output) else LAST_FRAME, _rows(screen)))
        return frames[:MOST_FRAMES - 1] + frames[-1:] if len(frames) > MOST_FRAMES else frames


def record(words, rows, columns, until=None, timeout=600, **options):
    """Runs a program on a pseudo-terminal until it exits, or until its screen satisfies until(text); returns the recording and its exit status, which
    is None for a program that had to be stopped."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    begun = time.monotonic()
    recording = Recording(rows, columns, [])
    with subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, **options) as running:
        os.close(slave)
        try:
            while time.monotonic() < begun + timeout:
                if select.select([master], [], [], 0.1)[0]:
                    try:
                        data = os.read(master, 65536)
                    except OSError:     # the last process with the terminal has closed it
                        data = b""
                    if not data:
                        return recording, running.wait(timeout)
                    recording.output.append((time.monotonic() - begun, data))
                    if until and until("\n".join(recording.screen().display)):
                        return recording, None
            raise AssertionError(f"{words[0]} did not end in time")
        finally:
            running.terminate()
            os.close(master)


def _rows(screen):
    """Returns a screen as rows of (text, colour, bold, reversed)."""
    rows = []
    for y in range(screen.lines):
        runs = []
        for x in range(screen.columns):
            cell = screen.buffer[y][x]
            style = (cell.fg, cell.bold, cell.reverse)
            if runs and runs[-1][1] == style:
                runs[-1][0].append(cell.data)
            else:
                runs.append(([cell.data], style))
        rows.append(tuple(("".join(text), *style) for text, style in runs))
    return rows


def _drawn(rows):
    """Returns the SVG elements of one screen."""
    parts = []
    for y, runs in enumerate(rows):
        x = 0
        for text, colour, bold, reverse in runs:
            width = len(text)
            ink = COLOURS.get(colour, f"#{colour}" if len(colour) == 6 else COLOURS["default"])
            left, top = MARGIN + x * CELL_WIDTH, MARGIN + y * CELL_HEIGHT
            if reverse:
                parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" fill="{ink}"/>')
            if text.strip():
                shown = text.rstrip()
                weight = ' font-weight="bold"' if bold else ""
                parts.append(f'<text x="{left:.1f}" y="{top + 13}" textLength="{len(shown) * CELL_WIDTH:.1f}" fill="{PAPER if reverse else ink}"{weight}>'
                             f"{html.escape(shown)}</text>")
            x += width
    return "".join(parts)


def svg(frames, title):
    """Returns a picture of [(seconds, rows)]: a still one for one frame, otherwise an animation that repeats."""
    rows, columns = len(frames[0][1]), sum(len(run[0]) for run in frames[0][1][0])
    width, height = columns * CELL_WIDTH + 2 * MARGIN, rows * CELL_HEIGHT + 2 * MARGIN
    total = sum(seconds for seconds, _ in frames)
    style, drawn, at = [], [], 0.0
    for number, (seconds, screen) in enumerate(frames):
        if len(frames) > 1:
            begin, end = 100 * at / total, 100 * (at + seconds) / total
            style.append(f".f{number}{{animation:f{number} {total:.2f}s step-end infinite}}"
                         f"@keyframes f{number}{{0%{{visibility:{'visible' if begin == 0 else 'hidden'}}}"
                         f"{begin:.3f}%{{visibility:visible}}{min(end, 100):.3f}%{{visibility:{'hidden' if end < 99.999 else 'visible'}}}}}")
        drawn.append(f'<g class="f{number}">{_drawn(screen)}</g>')
        at += seconds
    return (f'{LICENCE}<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img">'
            f"<title>{html.escape(title)}</title><style>text{{font:14px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}}{''.join(style)}</style>"
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>{"".join(drawn)}</svg>\n')


def still(recording, title):
    """Returns the last screen as a picture."""
    return svg([(1, _rows(recording.screen()))], title)
