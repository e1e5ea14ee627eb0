#!/usr/bin/env python3
"""Wraps the prose of all pages at 120 characters, the width of the code. Words, tables, headings and code stay as they are.

`--check` changes nothing and fails when a page is not wrapped. Needs nothing but Python.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
PLACES = [
    "*.md",
    "docs/*.md",
    "docs/adr/*.md",
    "docs/datasets/*.md",
    "helm/*/*.md",
    "migrations/*/*.md",
    "python/*.md",
    "typescript/*.md",
]
# what is no prose: tables, headings, HTML, quotes, pictures of their own, rules
FIXED = re.compile(r"^\s*(\||#|<|>|!\[|---+$|===+$)")
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)")
# a line must not begin with what would make it something else
MARKER = re.compile(r"^([-*+]|\d+[.)]|[#>|=~].*|<.*|```.*|!\[.*|---+)$")
# code in a line stays in one piece, unless it is very long
CODE, LONGEST, BLANK = re.compile(r"`[^`]*`"), 90, "\0"


def words(text):
    """The pieces of a text that stay whole; what must not begin a line goes with the word before it."""
    whole = CODE.sub(lambda code: code[0].replace(" ", BLANK) if len(code[0]) <= LONGEST else code[0], " ".join(text.split()))
    found = []
    for word in (word.replace(BLANK, " ") for word in whole.split()):
        if found and MARKER.match(word):
            found[-1] += " " + word
        else:
            found.append(word)
    return found


def filled(text, first, rest):
    """The lines of a text; `first` begins the first one, `rest` the others."""
    lines, line = [], first
    for word in words(text):
        if line.strip() and line != first and len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = rest + word
        else:
            line += word if line in (first, rest) else " " + word
    return [*lines, line]


def wrapped(page):
    """A page, wrapped."""
    out, block, code = [], None, False

    def end():
        nonlocal block
        if block:
            first, rest, parts = block
            out.extend(filled(" ".join(parts), first, rest))
        block = None

    for line in page.splitlines():
        fence = line.lstrip().startswith("```")
        if fence or code or not line.strip() or FIXED.match(line):
            end()
            code ^= fence
            out.append(line)
            continue
        item = ITEM.match(line)
        if item:
            end()
            block = (item[0], " " * len(item[0]), [line[item.end() :]])
        elif block:
            block[2].append(line)
        else:
            indent = line[: len(line) - len(line.lstrip())]
            block = (indent, indent, [line])
        if line.endswith(("  ", "\\")):
            sys.exit(f"a line break that is asked for is not known here: {line}")
    end()
    return "\n".join(out) + "\n"


def main():
    """Wraps all pages."""
    wrong = []
    for place in PLACES:
        for path in sorted(ROOT.glob(place)):
            page = path.read_text(encoding="utf-8")
            new = wrapped(page)
            if new.split() != page.split():
                sys.exit(f"{path}: words would change")
            if new != page:
                wrong.append(str(path.relative_to(ROOT)))
                if "--check" not in sys.argv:
                    path.write_text(new, encoding="utf-8")
    if "--check" in sys.argv and wrong:
        sys.exit("not wrapped, run scripts/wrap-docs.py: " + ", ".join(wrong))


main()
