"""Packed files: lines of events or of a history, the frequent kinds of them in a fixed form.

::

    file     = segment...               a segment begins where the one before has 4 MiB
    segment  = header (word | line)...  and is read without what stands before it
    line     = packed line | JSON line

Everything is a row of cells of 32 bytes. The first byte of a cell says what begins there, or that nothing does:

====  ======================================================================================================
byte  what begins
====  ======================================================================================================
1     a line that is not packed: its JSON follows, and fills its last cell up with one or more line ends
2     a segment: JSON with the version, the number of its ``first`` line, and what is the same in all lines
3     a word: its JSON value; the words of a segment are numbered from 0
4...  a packed line, as its layout says
else  nothing: the cell belongs to what began before it
====  ======================================================================================================

No byte of a JSON text is below 32, so that the first byte of a cell says what begins. In a packed line fields are
integers, least byte first, at the places that ``layout`` gives them; texts, enumerations and tuples of numbers are
numbers of words; an id such as ``producer-0:17`` is the word before its last digits, and their number. A line that does
not fit is not packed. A file may end within its last line, where its writer was killed. Pure: bytes come in and go out.
``writing`` packs, ``reading`` makes JSON lines again; ``laststand.emulator.verification`` has a reader of its own,
which makes columns.
"""
