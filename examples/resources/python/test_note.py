#!/usr/bin/env python3
"""Tests of the resource: `python3 test_note.py`."""
import os
import runpy
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "note.py")
Note = runpy.run_path(PROGRAM)["Note"]
from stead_resource import ask  # noqa: E402


class NoteTest(unittest.TestCase):
    def test_a_note_is_written_once_and_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            note, desired = Note(), {"path": os.path.join(folder, "note"), "text": "hello"}
            self.assertEqual(ask(note, "test", desired)["differing"], ["_exist"])
            predicted = ask(note, "set", desired, what_if=True)["after"]
            self.assertEqual((predicted["text"], predicted["_exist"]), ("hello", True))
            self.assertFalse(os.path.exists(desired["path"]), "a what-if changes nothing")
            self.assertEqual(sorted(ask(note, "set", desired)["changed"]), ["_exist", "text"])
            self.assertTrue(ask(note, "test", desired)["inDesiredState"])
            self.assertEqual(ask(note, "set", desired)["changed"], [])
            self.assertFalse(ask(note, "set", {**desired, "_exist": False})["after"]["_exist"])

    def test_it_stays(self):
        greeting = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocol": 1}}\n'
        command = [sys.executable, PROGRAM, "resident"]
        answered = subprocess.run(command, input=greeting, capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(answered.stdout.count("\n"), 1)
        self.assertIn('"protocol": 1', answered.stdout)


if __name__ == "__main__":
    unittest.main()
