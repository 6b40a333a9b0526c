package dev.fieldmesh.core

import dev.fieldmesh.core.Maps.numbers
import dev.fieldmesh.core.map.Geometry
import dev.fieldmesh.core.map.Ground
import dev.fieldmesh.core.map.Layer
import dev.fieldmesh.core.map.MapException
import dev.fieldmesh.core.map.TileAt
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

class VectorTileTest {
    private fun bytes(vararg all: Int) = ByteArray(all.size) { all[it].toByte() }

    /** A field of a message that holds bytes. */
    private fun field(number: Int, text: ByteArray) = numbers(number.toLong() shl 3 or 2, text.size.toLong()) + text

    /** A tile with one feature, a major road in the layer "roads". */
    private fun tile(type: Geometry, vararg geometry: Int) = field(
        3,
        field(1, "roads".encodeToByteArray()) +
            field(2, field(2, bytes(0, 0)) + bytes(3 shl 3, type.ordinal) + field(4, bytes(*geometry))) +
            field(3, "kind".encodeToByteArray()) +
            field(4, field(1, "major_road".encodeToByteArray())) +
            bytes(5 shl 3, 128, 32, 15 shl 3, 2),
    )

    /** As many empty fields as the largest tile has room for. */
    private fun pairs(key: Int) = ByteArray((4 shl 20) - 16) { if (it % 2 == 0) key.toByte() else 0 }

    private fun parts(tile: ByteArray) =
        Layer.read(tile).flatMap { it.features }.flatMap { it.parts() }.map { it.toList() }

    @Test
    fun `the examples of section 4_3_5`() {
        assertEquals(listOf(listOf(25, 17)), parts(tile(Geometry.POINTS, 9, 50, 34)))
        assertEquals(listOf(listOf(5, 7), listOf(3, 2)), parts(tile(Geometry.POINTS, 17, 10, 14, 3, 9)))
        assertEquals(listOf(listOf(2, 2, 2, 10, 10, 10)), parts(tile(Geometry.LINES, 9, 4, 4, 18, 0, 16, 16, 0)))
        assertEquals(
            listOf(listOf(2, 2, 2, 10, 10, 10), listOf(1, 1, 3, 5)),
            parts(tile(Geometry.LINES, 9, 4, 4, 18, 0, 16, 16, 0, 9, 17, 17, 10, 4, 8)),
        )
        assertEquals(
            listOf(listOf(3, 6, 8, 12, 20, 34)),
            parts(tile(Geometry.POLYGONS, 9, 6, 12, 18, 10, 12, 24, 44, 15)),
        )
        val layer = Layer.read(tile(Geometry.LINES)).single()
        assertEquals("roads" to 4096, layer.name to layer.extent)
        val feature = layer.features.single()
        assertEquals(listOf("major_road", null), listOf(feature.text("kind"), feature.text("name")))
        assertEquals(Geometry.LINES, feature.type)
    }

    @Test
    fun `a tile of another's writer is read`() {
        val town = Maps.opened(Maps.written("town"))
        val tiles = (17595..17610).flatMap { x -> (10735..10755).mapNotNull { y -> town.tile(TileAt(15, x, y)) } }
        val found = mutableSetOf<Any?>()
        for (layer in tiles.flatMap(Layer::read)) {
            for (f in layer.features) {
                found += Ground.of(layer.name, f)
                found += Ground.nameOf(layer.name, f)
                assertTrue(f.parts().isNotEmpty())
            }
        }
        assertEquals(Ground.entries.toSet<Any?>() + setOf("Long Road", "Nowhere", null), found)
    }

    @Test
    fun `a damaged tile is refused`() {
        val damaged = mapOf(
            "a length beyond the end" to bytes(3 shl 3 or 2, 100, 0),
            "a length without a bound" to bytes(3 shl 3 or 2, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
            "a number that never ends" to bytes(*IntArray(11) { 255 }),
            "a type that there is not" to bytes(3 shl 3 or 3),
            "half of a fixed number" to bytes(9 shl 3 or 1, 0),
            "more places than there are" to tile(Geometry.LINES, 9, 4, 4, 250, 255, 255, 255, 15, 2, 2),
            "half a place" to tile(Geometry.LINES, 9, 4),
            "a line that begins nowhere" to tile(Geometry.LINES, 18, 0, 16, 16, 0),
            "a command that there is not" to tile(Geometry.LINES, 12, 0, 0),
            "a place far outside" to tile(Geometry.LINES, 9, 254, 255, 255, 255, 15, 0),
            "a layer without any width" to field(3, bytes(5 shl 3, 0)),
            "a layer of more than a width" to field(3, bytes(5 shl 3, 255, 255, 255, 127)),
            "layers that fill the memory" to pairs(3 shl 3 or 2),
            "features that fill the memory" to field(3, pairs(2 shl 3 or 2)),
            "names of properties that fill the memory" to field(3, pairs(3 shl 3 or 2)),
            "values that fill the memory" to field(3, pairs(4 shl 3 or 2)),
            "places that fill the memory" to tile(
                Geometry.POINTS,
                *numbers(1_000_000L shl 3 or 1).map { it.toInt() }.toIntArray(),
                *IntArray(2_000_000),
            ),
        )
        for ((name, tile) in damaged) assertFailsWith<MapException>(name) { parts(tile) }
        val feature = field(2, bytes(7, 0, 0, 9)) + field(4, bytes(9, 0, 0))
        val tagless = Layer.read(field(3, field(2, feature) + field(3, "kind".encodeToByteArray())))
        assertNull(tagless.single().features.single().text("kind"), "tags that there are not")
    }

    /** A layer with one feature that has this name. */
    private fun named(layer: String, name: String) = Layer.read(
        field(
            3,
            field(1, layer.encodeToByteArray()) +
                field(2, field(2, bytes(0, 0))) +
                field(3, "name".encodeToByteArray()) +
                field(4, field(1, name.encodeToByteArray())),
        ),
    ).single().features.single()

    @Test
    fun `a name is of one line, and no longer than is read at a glance`() {
        val told = mapOf("New\nTown\u0007" to "NewTown", "n".repeat(200) to "n".repeat(80), "\n" to null)
        for ((name, shown) in told) assertEquals(shown, Ground.nameOf("places", named("places", name)))
        assertNull(named("places", "n".repeat(10_000)).text("name"), "read for each feature that has it")
    }

    @Test
    fun `whatever a tile is, it is read within its own bytes, seed 20261129`() {
        val random = Random(20261129)
        val town = assertNotNull(Maps.opened(Maps.written("town")).tile(TileAt(15, 17603, 10747)))
        repeat(3000) {
            val tile = town.copyOf()
            repeat(1 + random.nextInt(8)) { tile[random.nextInt(tile.size)] = random.nextInt().toByte() }
            try {
                for (layer in Layer.read(tile)) {
                    for (f in layer.features) {
                        f.text("kind")
                        f.parts()
                    }
                }
            } catch (_: MapException) {
                // it says so
            }
        }
    }
}
