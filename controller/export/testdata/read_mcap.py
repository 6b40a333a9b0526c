"""Reads recordings back by the official library.

    read_mcap.py FILE              every message as a line of JSON, in the order of time
    read_mcap.py FILE SEED COUNT   cuts the file off at COUNT random places, and checks
                                   that what is read of each is how the whole begins
"""

import io
import json
import random
import struct
import sys

from mcap.exceptions import McapError
from mcap.reader import make_reader
from mcap.records import Message
from mcap.stream_reader import StreamReader


def whole(path):
    with open(path, "rb") as f:
        reader = make_reader(f, validate_crcs=True)
        summary = reader.get_summary()
        for schema, channel, message in reader.iter_messages():
            print(json.dumps({
                "topic": channel.topic, "schema": schema.name, "time_ns": message.log_time,
                "sequence": message.sequence, "data": json.loads(message.data),
            }))
        metadata = {m.name: m.metadata for m in reader.iter_metadata()}
    with open(path, "rb") as f:
        in_order = sum(isinstance(r, Message) for r in StreamReader(f, validate_crcs=True).records)
    print(json.dumps({"messages": summary.statistics.message_count, "in_order": in_order,
                      "chunks": summary.statistics.chunk_count, "metadata": metadata}))


def messages(raw):
    out = []
    try:
        for r in StreamReader(io.BytesIO(raw)).records:
            if isinstance(r, Message):
                out.append((r.channel_id, r.log_time, r.data))
    except (McapError, EOFError, struct.error):
        pass
    return out


def cut(path, seed, count):
    with open(path, "rb") as f:
        raw = f.read()
    of_whole = messages(raw)
    dice = random.Random(seed)
    some = 0
    for _ in range(count):
        at = dice.randrange(len(raw))
        read = messages(raw[:at])
        if read != of_whole[:len(read)]:
            sys.exit(f"cut off at {at} of {len(raw)} bytes, it reads otherwise than the whole")
        some += bool(read)
    print(json.dumps({"whole": len(of_whole), "cuts": count, "with_messages": some}))


if len(sys.argv) == 2:
    whole(sys.argv[1])
else:
    cut(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
