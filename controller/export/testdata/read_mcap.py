"""Reads recordings back by the official library.

    read_mcap.py FILE              every message as a line of JSON, in the order of time
    read_mcap.py FILE SEED COUNT   cuts the file off at COUNT random places, and checks
                                   that what is read of each is how the whole begins,
                                   with every chunk that is whole
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

CHUNK, DATA_END = 0x06, 0x0F


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


def chunk_ends(raw):
    """Where each chunk ends: records follow each other from the magic on."""
    at, ends = len(b"\x89MCAP0\r\n"), []
    while True:
        opcode, length = struct.unpack_from("<BQ", raw, at)
        at += 9 + length
        if opcode == CHUNK:
            ends.append(at)
        if opcode == DATA_END:
            return ends


def cut(path, seed, count):
    with open(path, "rb") as f:
        raw = f.read()
    of_whole = messages(raw)
    ends = [(end, len(messages(raw[:end]))) for end in chunk_ends(raw)]
    dice = random.Random(seed)
    among = 0
    for _ in range(count):
        at = dice.randrange(len(raw))
        read = messages(raw[:at])
        if read != of_whole[:len(read)]:
            sys.exit(f"cut off at {at} of {len(raw)} bytes, it reads otherwise than the whole")
        least = max([n for end, n in ends if end <= at], default=0)
        if len(read) < least:
            sys.exit(f"cut off at {at} of {len(raw)} bytes, {len(read)} of {least} whole messages are read")
        among += ends[0][0] <= at < ends[-1][0]
    print(json.dumps({"chunks": len(ends), "cuts": count, "amongChunks": among}))


if len(sys.argv) == 2:
    whole(sys.argv[1])
else:
    cut(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
