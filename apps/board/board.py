"""Pins a note on the board of board.c, or prints all: "board.py pin TEXT", "board.py read"."""

import struct
import sys

import weft

PIN, READ, NOTE = 1, 2, 3

weft.init()
board = weft.find("weft-example-board", timeout=5)
if sys.argv[1] == "pin":
    weft.send(*board, sys.argv[2].encode(), tag=PIN)
else:
    mine = weft.Port()
    weft.send(*board, struct.pack("i", mine.number), tag=READ)
    while (note := mine.receive(timeout=5)).tag == NOTE:
        print(note.data.decode())
weft.finish()
