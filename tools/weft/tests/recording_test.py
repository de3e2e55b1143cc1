#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that recordings of terminal sessions show what the terminal showed."""
import json
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
import recording

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    """Returns the text of each frame."""
    tree = xml.etree.ElementTree.fromstring(picture)
    return [[text.text for text in group.iter(f"{SVG}text")] for group in tree.iter(f"{SVG}g")]


class Recordings(unittest.TestCase):
    def test_recorded_program_runs_on_a_terminal(self):
        program = "import sys; print(sys.stdout.isatty(), '\\x1b[31mred\\x1b[0m <&>')"
        seen, status = recording.record([sys.executable, "-c", program], rows=4, columns=40)
        self.assertEqual(status, 0)
        self.assertEqual(texts(recording.still(seen, "a title")), [["True", "red", " <&>"]])

    def test_recorded_program_is_stopped_when_the_awaited_text_is_on_the_screen(self):
        seen, status = recording.record(["sh", "-c", "echo ready; read never"], rows=4, columns=40, until=lambda screen: "ready" in screen)
        self.assertIsNone(status)
        self.assertIn("ready", seen.screen().display[0])

    def test_pauses_in_a_recording_start_new_frames_and_are_shortened(self):
        seen = recording.Recording(3, 20, [(0.0, b"one\r\n"), (0.1, b"two\r\n"), (60.0, b"three")])
        frames = seen.frames()
        self.assertEqual([seconds for seconds, _ in frames], [recording.MOST_PAUSE, recording.LAST_FRAME])
        self.assertEqual(texts(recording.svg(frames, "")), [["one", "two"], ["one", "two", "three"]])

    def test_number_of_frames_of_a_recording_is_limited(self):
        seen = recording.Recording(2, 9, [(float(second), b"%d\r" % second) for second in range(300)])
        frames = seen.frames()
        self.assertEqual(len(frames), recording.MOST_FRAMES)
        self.assertEqual(texts(recording.svg(frames, ""))[-1], ["299"])

    def test_recording_is_written_as_asciicast_version_2(self):
        header, event = recording.Recording(2, 9, [(0.5, b"x\n")]).asciicast().splitlines()
        self.assertEqual(json.loads(header), {"version": 2, "width": 9, "height": 2})
        self.assertEqual(json.loads(event), [0.5, "o", "x\n"])


if __name__ == "__main__":
    unittest.main()
