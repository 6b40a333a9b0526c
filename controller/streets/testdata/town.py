"""Writes a street map of a town that nobody built, where the tests' synthetic runs are driven.

    python town.py OUT.pmtiles [protomaps | openmaptiles | png | many]

The writers are others' (pmtiles and mapbox-vector-tile, of PyPI): what reads the file here is tried with what
others write. With png, tiles are pictures of one colour; with many there are 40,000 small tiles, which need
directories below the root.
"""

import gzip
import math
import struct
import sys
import zlib

import mapbox_vector_tile
import numpy
import shapely
from pmtiles.tile import Compression, TileType, zxy_to_tileid
from pmtiles.writer import write
from shapely.geometry import LineString, Point, Polygon, box

LAT, LON = 52.5, 13.4  # of the roadside node; the car drives north of it
NORTH = 1 / 111194.9  # degrees of a metre
EAST = NORTH / math.cos(math.radians(LAT))
ATTRIBUTION = '<a href="https://example.org/copyright">&copy; Nobody &amp; contributors</a> <b>made up</b>'


def at(east_m, north_m):
    return LON + east_m * EAST, LAT + north_m * NORTH


def line(*places):
    return LineString([at(*p) for p in places])


def area(x, y, width, height):
    return Polygon([at(x, y), at(x + width, y), at(x + width, y + height), at(x, y + height)])


NAMES = {"major_road": "Long Road", "lake": "Round Lake", "locality": "Nowhere"}


def town():
    """(what, shape) by the names of Protomaps' basemap: layer and kind."""
    yield ("earth", "earth"), area(-900, -800, 1800, 2300)
    yield ("landuse", "park"), area(-340, 560, 150, 130)
    yield ("landuse", "forest"), area(-880, -560, 330, 900)
    yield ("landuse", "residential"), area(-350, -500, 730, 1800)  # which is not drawn
    yield ("boundaries", "county"), line((-900, 1350), (900, 1250))
    yield ("places", "locality"), Point(at(-100, 350))
    yield ("roads", "highway"), line((-900, -700), (900, -640))
    yield ("roads", "major_road"), line((0, -800), (0, 1500))  # on which the car drives
    yield ("roads", "rail"), line((-700, -800), (-420, 300), (-500, 1500))
    yield ("roads", "path"), line((80, -400), (140, -100), (90, 200), (180, 600))
    for y in range(-500, 1400, 150):
        yield ("roads", "minor_road"), line((-350, y), (0, y + 10), (380, y))
    for x in (-350, -180, 190, 380):
        yield ("roads", "minor_road"), line((x, -500), (x, 1300))
    yield ("roads", "ferry"), line((420, 0), (900, 0))  # which is not drawn
    yield ("water", "river"), line((-900, 900), (-300, 760), (300, 790), (900, 700))
    yield ("water", "lake"), Polygon([at(460 + 150 * math.cos(a / 4), 350 + 260 * math.sin(a / 4)) for a in range(25)])
    for y in range(-470, 1250, 150):
        for x in (-320, -250, -150, -70, 30, 110, 220, 300):
            yield ("buildings", "building"), area(x, y + 25, 38, 30)
            yield ("buildings", "building"), area(x + 8, y + 80, 24, 40)


OPENMAPTILES = {
    ("roads", "highway"): ("transportation", "motorway"),
    ("roads", "major_road"): ("transportation", "primary"),
    ("roads", "minor_road"): ("transportation", "minor"),
    ("roads", "path"): ("transportation", "path"),
    ("roads", "rail"): ("transportation", "rail"),
    ("roads", "ferry"): ("transportation", "ferry"),
    ("water", "river"): ("waterway", "river"),
    ("water", "lake"): ("water", "lake"),
    ("buildings", "building"): ("building", ""),
    ("earth", "earth"): ("", ""),
    ("landuse", "park"): ("park", "nature_reserve"),
    ("landuse", "forest"): ("landcover", "wood"),
    ("landuse", "residential"): ("landuse", "residential"),
    ("boundaries", "county"): ("boundary", ""),
    ("places", "locality"): ("place", "town"),
}


def mercator(zoom):
    def project(lon, lat):
        side = 2**zoom
        y = (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2
        return (lon + 180) / 360 * side, y * side

    return lambda shape: shapely.transform(shape, lambda places: numpy.array([project(*p) for p in places]))


def vector_tiles(schema):
    names = (lambda what: OPENMAPTILES[what]) if schema == "openmaptiles" else (lambda what: what)
    key = "class" if schema == "openmaptiles" else "kind"
    for zoom in range(11, 16):
        shapes = [(names(what), NAMES.get(what[1]), mercator(zoom)(shape)) for what, shape in town()]
        bounds = [s.bounds for _, _, s in shapes]
        for x in range(int(min(b[0] for b in bounds)), int(max(b[2] for b in bounds)) + 1):
            for y in range(int(min(b[1] for b in bounds)), int(max(b[3] for b in bounds)) + 1):
                layers = {}
                for (layer, kind), name, shape in shapes:
                    if not layer or layer.startswith("building") and zoom < 13:
                        continue
                    piece = shape.intersection(box(x - 1 / 64, y - 1 / 64, x + 65 / 64, y + 65 / 64))
                    if not piece.is_empty:
                        says = {key: kind, "n": 1, **({"name": name} if name else {})}
                        layers.setdefault(layer, []).append({"geometry": piece, "properties": says})
                if layers:
                    yield zoom, x, y, mapbox_vector_tile.encode(
                        [{"name": name, "features": features} for name, features in layers.items()],
                        default_options={"y_coord_down": True, "quantize_bounds": (x, y, x + 1, y + 1)},
                    )


def png(colour):
    def chunk(kind, text):
        return struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(kind + text))

    rows = zlib.compress((b"\0" + bytes(colour) * 256) * 256)
    header = struct.pack(">IIBBBBB", 256, 256, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def pictures():
    for zoom in range(12, 17):
        x, y = (int(v) for v in mercator(zoom)(LineString([at(0, 0), at(1, 1)])).coords[0])
        for i in range(-2, 3):
            for j in range(-2, 3):
                yield zoom, x + i, y + j, png((120 + 20 * i, 150 + 20 * j, 130))


def many():
    """Each tile says what its number leaves of 50: equal tiles are kept once. Those of zoom 3 are all equal: one run."""
    for x in range(8):
        for y in range(8):
            yield 3, x, y, b"sea"
    for i in range(8000):
        yield 14, i * 7919 % 16384, i * 104729 % 16384, b"tile %d" % (i % 50)


def main(out, what="protomaps"):
    packed = what != "png"
    tiles = pictures() if what == "png" else many() if what == "many" else vector_tiles(what)
    with write(out) as w:
        for zoom, x, y, text in sorted(tiles, key=lambda t: zxy_to_tileid(*t[:3])):
            w.write_tile(zxy_to_tileid(zoom, x, y), gzip.compress(text, mtime=0) if packed else text)
        (west, south), (east, north) = at(-900, -800), at(900, 1500)
        e7 = {"min_lon_e7": west, "min_lat_e7": south, "max_lon_e7": east, "max_lat_e7": north, "center_lon_e7": LON,
              "center_lat_e7": LAT}
        w.finalize(
            {"tile_type": TileType.PNG if what == "png" else TileType.MVT, "center_zoom": 14,
             "tile_compression": Compression.GZIP if packed else Compression.NONE,
             **{k: int(v * 1e7) for k, v in e7.items()}},
            {"attribution": ATTRIBUTION, "vector_layers": []},
        )


main(*sys.argv[1:])
