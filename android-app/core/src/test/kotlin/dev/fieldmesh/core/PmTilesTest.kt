package dev.fieldmesh.core

import dev.fieldmesh.core.Maps.entry
import dev.fieldmesh.core.Maps.made
import dev.fieldmesh.core.Maps.numbers
import dev.fieldmesh.core.Maps.opened
import dev.fieldmesh.core.Maps.packed
import dev.fieldmesh.core.map.MapException
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.PmTiles
import dev.fieldmesh.core.map.TileAt
import dev.fieldmesh.core.map.TileType
import java.nio.channels.ClosedChannelException
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertContentEquals
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

class PmTilesTest {
    private val town get() = Maps.written("town").readBytes()

    private fun PmTiles.text(zoom: Int, x: Int, y: Int) = tile(TileAt(zoom, x, y))?.decodeToString()

    @Test
    fun `tiles have the numbers of section 4_1`() {
        val told = mapOf(
            TileAt(0, 0, 0) to 0,
            TileAt(1, 0, 0) to 1,
            TileAt(1, 0, 1) to 2,
            TileAt(1, 1, 1) to 3,
            TileAt(1, 1, 0) to 4,
            TileAt(2, 0, 0) to 5,
            TileAt(12, 3423, 1763) to 19078479,
        )
        for ((at, id) in told) assertEquals(id.toLong(), at.id, "$at")
        val all = (0 until 64).flatMap { x -> (0 until 64).map { y -> TileAt(6, x, y).id } }
        assertEquals((1365L until 1365 + 4096).toList(), all.sorted())
    }

    @Test
    fun `an archive of another's writer is read`() {
        val archive = opened(Maps.written("town"))
        assertEquals(TileType.MVT, archive.type)
        assertEquals(11..15, archive.zooms)
        val (west, south, east, north) = archive.bounds
        assertTrue(13.4 in west..east && 52.5 in south..north)
        assertTrue("&copy; Nobody &amp; contributors" in archive.attribution)
        assertNotNull(archive.tile(TileAt(15, 17603, 10747)))
        for ((zoom, x, y) in listOf(
            Triple(15, 17603, 10700),
            Triple(16, 35206, 21494),
            Triple(10, 550, 335),
            Triple(15, -1, 0),
            Triple(15, 0, 1 shl 15),
        )) {
            assertNull(archive.tile(TileAt(zoom, x, y)), "$zoom/$x/$y")
        }
        val (at, _) = assertNotNull(archive.cover(TileAt(18, 140824, 85976)))
        assertEquals(TileAt(15, 17603, 10747), at)
        assertNull(archive.cover(TileAt(15, 0, 0)))
    }

    @Test
    fun `with leaves and runs every tile of another's writer is found, and no other`() {
        val archive = opened(Maps.written("many"))
        for (i in 0 until 8000) {
            val x = i * 7919 % 16384
            val y = (i * 104729L % 16384).toInt()
            assertEquals("tile ${i % 50}", archive.text(14, x, y), "14/$x/$y")
            assertNull(archive.tile(TileAt(14, x, y xor 1)), "14/$x/${y xor 1}")
        }
        for (x in 0 until 8) for (y in 0 until 8) assertEquals("sea", archive.text(3, x, y))
        assertEquals(TileAt(3, 7, 7), archive.cover(TileAt(14, 16383, 16383))?.first)
    }

    @Test
    fun `nothing need be packed, and pictures are as they are`() {
        for ((i, type) in TileType.entries.withIndex()) {
            val picture = byteArrayOf(1, 2, 3)
            val tile = if (type == TileType.MVT) packed(picture) else picture
            val archive = opened(made(entry(9, tile.size.toLong()), tiles = tile, type = i + 1))
            assertEquals(type, archive.type)
            assertContentEquals(picture, archive.tile(TileAt(1, 1, 1)))
        }
    }

    private fun edited(at: Int, vararg with: Int) =
        town.also { raw -> with.forEachIndexed { i, b -> raw[at + i] = b.toByte() } }

    @Test
    fun `what is not read, or was made to do harm, is refused, and why is said`() {
        val bomb = packed(ByteArray((4 shl 20) + 1))
        val tile = packed("tile".encodeToByteArray())
        val inner = packed(entry(0, 100))
        val deep = packed(entry(0, inner.size.toLong()))
        val sqlite = "SQLite format 3".map { it.code }.toIntArray()
        val refused = mapOf(
            "nothing" to (ByteArray(0) to MapFault.OTHER_FORMAT),
            "another format" to (edited(0, *sqlite) to MapFault.OTHER_FORMAT),
            "an older version" to (edited(2, 2, 0) to MapFault.OTHER_VERSION),
            "a newer version" to (edited(7, 4) to MapFault.OTHER_VERSION),
            "brotli" to (edited(98, 3) to MapFault.OTHER_COMPRESSION),
            "zstd" to (edited(97, 4) to MapFault.OTHER_COMPRESSION),
            "AVIF" to (edited(99, 5) to MapFault.OTHER_TILES),
            "no type" to (edited(99, 0) to MapFault.OTHER_TILES),
            "zooms that cannot be" to (edited(100, 14, 100) to MapFault.DAMAGED),
            "a negative zoom" to (edited(100, 200, 14) to MapFault.DAMAGED),
            "a root of any size" to (edited(16, 0, 0, 0, 0, 1) to MapFault.DAMAGED),
            "a root out of the file" to (edited(8, 255, 255, 255, 0) to MapFault.TOO_SHORT),
            "a root before the file" to (edited(8, 255, 255, 255, 255, 255, 255, 255, 255) to MapFault.DAMAGED),
            "half a header" to (town.copyOf(100) to MapFault.TOO_SHORT),
            "half a file" to (town.copyOf(200) to MapFault.TOO_SHORT),
            "metadata of another kind" to (made(entry(1, 4), metadata = "[") to MapFault.DAMAGED),
            "entries that are not there" to (made(numbers(0xffffffff, 0)) to MapFault.DAMAGED),
            "no entry" to (made(numbers(0)) to MapFault.DAMAGED),
            "numbers that go back" to (made(numbers(2, 5, -3, 1, 1, 1, 1, 1, 1)) to MapFault.DAMAGED),
            "a number without an end" to (made(ByteArray(20) { -1 }) to MapFault.DAMAGED),
            "half a directory" to (made(numbers(1, 0, 1)) to MapFault.DAMAGED),
            "a first entry without a place" to (made(numbers(1, 0, 1, 4, 0)) to MapFault.DAMAGED),
            "a root that never ends" to (made(ByteArray((4 shl 20) + 1)) to MapFault.DAMAGED),
            "a tile out of the file" to (made(entry(1, 100), tiles = tile) to MapFault.DAMAGED),
            "a tile before the file" to (made(entry(1, 4, -9), tiles = tile) to MapFault.DAMAGED),
            "an empty tile" to (made(entry(1, 0), tiles = tile) to MapFault.DAMAGED),
            "a tile of any size" to
                (made(entry(1, (2 shl 20) + 1), tiles = ByteArray((2 shl 20) + 1)) to MapFault.DAMAGED),
            "a tile that never ends" to (made(entry(1, bomb.size.toLong()), tiles = bomb) to MapFault.DAMAGED),
            "a tile that is not packed" to
                (made(entry(1, 12), tiles = "tile of text".encodeToByteArray()) to MapFault.DAMAGED),
            "half a packed tile" to (made(entry(1, 12), tiles = tile.copyOf(12)) to MapFault.DAMAGED),
            "leaves without an end" to (made(entry(0, deep.size.toLong()), leaves = deep) to MapFault.DAMAGED),
        )
        for ((name, case) in refused) {
            val (bytes, fault) = case
            val e = assertFailsWith<MapException>(name) { opened(bytes).use { it.tile(TileAt(0, 0, 0)) } }
            assertEquals(fault, e.fault, "$name: ${e.message}")
        }
        assertEquals("tile", opened(made(entry(1, tile.size.toLong()), tiles = tile)).text(0, 0, 0))
    }

    @Test
    fun `a map that does not say whose it is is read`() {
        for (metadata in listOf("{}", "", """{"attribution": null}""")) {
            assertEquals("", opened(made(entry(1, 4), metadata = metadata)).attribution, metadata)
        }
    }

    @Test
    fun `whatever the file is, it is read within bounds, seed 20261129`() {
        val random = Random(20261129)
        repeat(3000) {
            val raw = town
            repeat(1 + random.nextInt(4)) {
                raw[random.nextInt(if (it == 0) 127 else raw.size)] =
                    random.nextInt().toByte()
            }
            try {
                opened(raw).use { for (zoom in 0..15) it.tile(TileAt(zoom, 17603 shr 15 - zoom, 10747 shr 15 - zoom)) }
            } catch (_: MapException) {
                // it says so
            }
        }
    }

    @Test
    fun `what was read is kept within bounds`() {
        val one = packed(ByteArray(3 shl 20))
        val archive = opened(made(entry(99, one.size.toLong()), tiles = one))
        val first = archive.tile(TileAt(0, 0, 0))
        assertTrue(first === archive.tile(TileAt(0, 0, 0)), "it is read again")
        for (x in 0..1) for (y in 0..1) archive.tile(TileAt(1, x, y))
        assertTrue(first !== archive.tile(TileAt(0, 0, 0)), "five tiles of 3 MB are kept")
        archive.close()
        assertFailsWith<ClosedChannelException> { archive.tile(TileAt(2, 0, 0)) }
    }
}
