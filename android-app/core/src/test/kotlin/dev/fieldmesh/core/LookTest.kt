package dev.fieldmesh.core

import dev.fieldmesh.core.drive.metresFrom
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.ScaleBar
import dev.fieldmesh.core.map.Spot
import dev.fieldmesh.core.map.TileAt
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

class LookTest {
    private val look = Look.at(listOf(Spot.of(52.5, 13.4), Spot.of(52.501, 13.402)), 400, 600, 20.0, 100.0)

    @Test
    fun `a place lies in the tiles that the specifications of others say`() {
        // The example of the OpenStreetMap wiki's page "Slippy map tilenames": 35.6590699, 139.7006793 at zoom 18.
        val at = Spot.of(35.6590699, 139.7006793)
        assertEquals(232_798 to 103_246, (at.x * (1 shl 18)).toInt() to (at.y * (1 shl 18)).toInt())
        assertEquals(35.6590699, at.latDeg, 1e-9)
        assertEquals(0.0, Spot.of(90.0, -180.0).y, 1e-3)
    }

    @Test
    fun `metres are those of the ground`() {
        val (east, north) = metresFrom(52.5, 13.4, 52.501, 13.402)
        val from = Spot.of(52.5, 13.4)
        val to = Spot.of(52.501, 13.402)
        // Web Mercator is of a sphere of 6378 km, and the mean Earth has 6371.
        assertEquals(east, (look.x(to) - look.x(from)) * look.metresPerPx, east * 0.002)
        assertEquals(north, (look.y(from) - look.y(to)) * look.metresPerPx, north * 0.002)
    }

    @Test
    fun `all places are seen, and never closer than wanted`() {
        assertEquals(20f, look.x(Spot.of(52.5, 13.4)), 0.1f)
        assertEquals(380f, look.x(Spot.of(52.501, 13.402)), 0.1f)
        val single = Look.at(listOf(Spot.of(52.5, 13.4)), 400, 600, 20.0, 100.0)
        assertEquals(100.0, 400 * single.metresPerPx, 1e-6)
    }

    @Test
    fun `what a finger touches stays under it`() {
        val at = look.spot(100f, 500f)
        val moved = look.moved(30f, -40f)
        assertEquals(130f to 460f, moved.x(at) to moved.y(at))
        val zoomed = look.zoomed(3.0, 100f, 500f)
        assertEquals(100f, zoomed.x(at), 0.01f)
        assertEquals(500f, zoomed.y(at), 0.01f)
        assertEquals(look.metresPerPx / 3, zoomed.metresPerPx, look.metresPerPx * 1e-4)
        assertTrue(look.zoomed(1e12).metresPerPx > 0.001)
        assertTrue(look.zoomed(1e-12).mapPx >= 256)
        assertEquals(0.0, look.zoomed(1e-12).moved(1e9f, 0f).middle.x)
    }

    @Test
    fun `a wider look holds what is nearly the same`() {
        val wide = look.wider(0.25)
        assertEquals(600 to 900, wide.width to wide.height)
        assertTrue(wide.holds(look) && wide.holds(look.moved(90f, -90f)) && wide.holds(look.zoomed(1.2)))
        assertFalse(wide.holds(look.moved(110f, 0f)) || wide.holds(look.moved(0f, 160f)))
        assertFalse(wide.holds(look.zoomed(1.5)) || wide.holds(look.zoomed(0.6)))
    }

    @Test
    fun `tiles cover what is seen, at a zoom that the map has`() {
        val (west, north) = look.spot(0f, 0f)
        val (east, south) = look.spot(400f, 600f)
        for (zooms in listOf(0..15, 0..22, 17..22)) {
            val all = assertNotNull(look.tiles(zooms, 256.0))
            val side = (1 shl all.first().zoom).toDouble()
            assertTrue(all.minOf { it.x } / side <= west && (all.maxOf { it.x } + 1) / side >= east)
            assertTrue(all.minOf { it.y } / side <= north && (all.maxOf { it.y } + 1) / side >= south)
            assertTrue(all.all { it.zoom in zooms })
        }
        assertEquals(listOf(TileAt(0, 0, 0)), look.zoomed(1e-12).tiles(0..15, 256.0))
        assertNull(look.zoomed(1e-12).tiles(14..15, 256.0), "too many to read")
    }

    @Test
    fun `what a map does not cover is not met`() {
        assertTrue(look.meets(listOf(13.0, 52.0, 14.0, 53.0)) && look.meets(listOf(13.401, 52.4, 13.41, 52.51)))
        assertFalse(look.meets(listOf(13.41, 52.0, 14.0, 53.0)) || look.meets(listOf(13.0, 52.52, 14.0, 53.0)))
        assertTrue(look.meets(List(4) { 0.0 }), "a map that does not say it")
    }

    @Test
    fun `a scale bar is round in its unit`() {
        fun bar(across: Double, isImperial: Boolean) =
            Look.at(listOf(Spot.of(0.0, 0.0)), 400, 400, 0.0, across).bar(100.0, isImperial)
        val told = listOf(100.0, 250.0, 4100.0, 90_000.0).flatMap { m -> listOf(bar(m, false), bar(m, true)) }
        assertEquals(
            listOf(
                20 to ScaleBar.Unit.METRE,
                50 to ScaleBar.Unit.FOOT,
                50 to ScaleBar.Unit.METRE,
                200 to ScaleBar.Unit.FOOT,
                1 to ScaleBar.Unit.KILOMETRE,
                2000 to ScaleBar.Unit.FOOT,
                20 to ScaleBar.Unit.KILOMETRE,
                10 to ScaleBar.Unit.MILE,
            ),
            told.map { it.number to it.unit },
        )
        assertEquals(80.0, bar(100.0, false).px, 1e-6)
        val svalbard = Look.at(listOf(Spot.of(84.0, 20.0)), 400, 400, 0.0, 0.01)
        assertTrue(svalbard.zoomed(1e9).bar(96.0, true).px <= 96.0)
    }
}
