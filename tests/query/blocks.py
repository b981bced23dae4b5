# SPDX-License-Identifier: MIT
"""Every row of `allocations`, column by column, against the independent reader; markers, scopes and
mappings against the events that it finds."""

import collections

import queried  # finds the modules below
import lives
import reader
from queried import ask, busy, equal, fail, finish, scratch

PAGE = 4096


def events_of(story):
    """With the thread that each is of."""
    for block, payload in story.recording.of_kind(reader.EVENTS):
        for event in reader.Decoder(block, payload):
            yield block.thread, event


def expected(story):
    """By (thread, number) what each row has to say; ids are left out: they are an order."""
    allocs, freed_in, rows = {}, {}, {}
    for _, event in events_of(story):
        if isinstance(event, reader.Alloc):
            allocs[event.block] = event
        elif isinstance(event, reader.Free):
            freed_in[event.block] = event.context or None
    reallocated = {life.old for life in story.lives if life.old}
    for life in story.lives:
        event = allocs[life.block]
        ended = life.death != lives.NEVER
        rows[life.block] = {
            "size": life.size, "slack": event.slack, "usable": life.size + event.slack,
            "address": life.address or None, "context": life.context,
            "alignment": 1 << event.alignment if event.alignment else None,
            "zeroed": event.flags & 1, "mapped": event.flags >> 1 & 1, "arena": event.flags >> 2 & 1,
            "class": "heap" if life.heap else "pool", "pool": None if life.heap else "arena",
            "born": life.birth, "freed": life.death if ended else None,
            "lifetime": life.death - life.birth if ended else None,
            "freed_by": life.freer if ended else None,
            "freed_context": freed_in.get(life.block) if ended else None,
            "temporary": int(life.temporary), "reallocated": int(life.block in reallocated),
            "chain_length": life.chain.index(life) + 1, "chain_born": life.chain[0].birth,
            "first_size": life.chain[0].size, "inherited": 0, "weight": life.size, "count": 1,
            "old": life.old if life.old else None, "first": life.chain[0].block,
        }
    return rows


def check_blocks(path, story):
    wanted = expected(story)
    rows = ask(path, "SELECT * FROM allocations")
    names = {row["id"]: (row["thread"], row["number"]) for row in rows}
    equal((len(rows), len(names)), (len(wanted), len(wanted)), "rows, ids")
    for row in rows:
        row["old"] = names.get(row.pop("realloc_of"))
        row["first"] = names.get(row.pop("chain"))
        block = row.pop("thread"), row.pop("number")
        del row["id"], row["scope"]
        if not equal(row, wanted.get(block), "block", block):
            break


def check_scopes(path, story):
    """The oracle knows the set of scopes that a thread is in, a row the innermost of them."""
    found = {(row["thread"], row["number"]): row["scope"]
             for row in ask(path, "SELECT thread, number, scope FROM allocations")}
    for life in story.lives:
        scope = found[life.block]
        if (scope is None) != (not life.scopes) or (scope and scope not in life.scopes):
            fail("block", life.block, "scope", scope, "but its thread is in", set(life.scopes))
            break
    begun = collections.Counter()
    points = []
    for _, event in events_of(story):
        if isinstance(event, reader.Mark):
            name = event.text.split(b"\0", 1)[0].decode()
            begun[name] += event.what == 2
            points += [(event.time, name)] if event.what == 1 else []
    equal({row["name"]: row["n"] for row in
           ask(path, "SELECT name, count(*) n FROM scopes GROUP BY name")}, dict(+begun), "scopes")
    equal(ask(path, "SELECT count(*) n FROM scopes WHERE ended < begun OR "
                    "duration <> ended - begun")[0]["n"], 0, "scopes that end before they begin")
    equal([(row["time"], row["name"]) for row in
           ask(path, "SELECT time, name FROM markers WHERE kind = 'mark' ORDER BY time, name")],
          sorted(points), "marks")


def check_mappings(path, story):
    """busy.c maps and unmaps whole mappings only: a row each, its end that of the munmap."""
    mapped, ends = [], collections.Counter()
    for thread, event in events_of(story):
        if isinstance(event, reader.Map) and event.operation == 1:
            mapped.append((event.time, thread, event.context, event.address,
                           -(-event.size // PAGE) * PAGE))
        elif isinstance(event, reader.Map):
            ends[event.time, thread, event.address] += 1
    rows = ask(path, "SELECT * FROM mappings")
    equal(sorted((row["born"], row["thread"], row["context"], row["address"], row["size"])
                 for row in rows), sorted(mapped), "mappings")
    equal(collections.Counter((row["freed"], row["freed_by"], row["address"])
                              for row in rows if row["freed"] is not None), ends, "their ends")
    if not ends:
        fail("nothing was unmapped")


def main():
    for options in ((), ("--precise", "--free-stacks")):
        path = busy(scratch(), *options)
        story = lives.Story(path)
        check_blocks(path, story)
        check_scopes(path, story)
        check_mappings(path, story)


main()
finish()
