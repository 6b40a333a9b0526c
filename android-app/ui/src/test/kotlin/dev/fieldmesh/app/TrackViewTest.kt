package dev.fieldmesh.app

import android.graphics.Bitmap
import android.graphics.Canvas
import android.os.Looper
import android.view.MotionEvent
import dev.fieldmesh.app.view.MapPainter
import dev.fieldmesh.app.view.TrackView
import dev.fieldmesh.core.Maps
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.app.TrackPoint
import dev.fieldmesh.core.app.TrackState
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.PmTiles
import dev.fieldmesh.core.map.Spot
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import java.io.ByteArrayOutputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertNotEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNull
import kotlin.test.assertTrue

@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class TrackViewTest {
    private val app = RuntimeEnvironment.getApplication()
    private val view = TrackView(app, null).apply { layout(0, 0, SIDE, SIDE) }

    private fun drawn() = Bitmap.createBitmap(SIDE, SIDE, Bitmap.Config.ARGB_8888).also { view.draw(Canvas(it)) }

    private fun drawn(vararg places: TrackPoint, unit: SpeedUnit = SpeedUnit.KMH): Bitmap {
        view.show(TrackState(places.toList()), unit)
        shadowOf(Looper.getMainLooper()).idle()
        return drawn()
    }

    private fun Bitmap.colors() = (0 until SIDE).flatMap { x -> (0 until SIDE).map { y -> getPixel(x, y) } }.toSet()

    /** The colour half-way between two places. */
    private fun halfWay(afterGap: Boolean): Int =
        drawn(TrackPoint(50.0, 8.0, 1e7), TrackPoint(50.0, 8.01, 1e7, afterGap)).getPixel(SIDE / 2, SIDE / 2)

    @Test
    fun `the way across a gap has no measured colour`() {
        assertEquals(app.getColor(R.color.line), halfWay(afterGap = true))
        assertNotEquals(app.getColor(R.color.line), halfWay(afterGap = false))
    }

    @Test
    fun `the colours of throughput have a scale`() {
        fun Bitmap.colors() = (0 until SIDE).map { getPixel(it, SCALE_Y) }.toSet()
        val ends = setOf(app.getColor(R.color.least), app.getColor(R.color.most))
        val measured = drawn(TrackPoint(50.0, 8.0, 1e7), TrackPoint(50.0, 8.01, 1e7)).colors()
        assertEquals(emptySet(), ends - measured)
        val unmeasured = drawn(TrackPoint(50.0, 8.0), TrackPoint(50.0, 8.01)).colors()
        assertEquals(ends, ends - unmeasured)
    }

    private fun put(map: PmTiles?, worker: CoroutineDispatcher = Dispatchers.Unconfined) {
        view.layer.worker = worker
        view.layer.map = map
        view.changed()
        shadowOf(Looper.getMainLooper()).idle()
    }

    private val town get() = Maps.opened(Maps.written("town"))

    /** Along the town's long road. */
    private val road = arrayOf(TrackPoint(52.499, 13.4, 1e7), TrackPoint(52.503, 13.4, 1e7))

    @Test
    fun `the map is painted beside the main thread, and the track stands on it`() {
        val later = Later()
        drawn(*road)
        put(town, later)
        val land = app.getColor(R.color.map_land)
        assertTrue(land !in drawn().colors(), "it was painted before its turn")
        assertEquals(1, later.run(), "one at a time")
        shadowOf(Looper.getMainLooper()).idle()
        val seen = drawn()
        val shown = listOf(land, app.getColor(R.color.map_building), app.getColor(R.color.map_road))
        assertEquals(emptySet(), shown.toSet() - seen.colors())
        assertEquals(app.getColor(R.color.most), seen.getPixel(SIDE / 2, SIDE / 2))
        view.zoom(1.1)
        shadowOf(Looper.getMainLooper()).idle()
        assertEquals(0, later.run(), "what was painted is wide enough")
        view.zoom(4.0)
        view.zoom(0.01)
        shadowOf(Looper.getMainLooper()).idle()
        assertEquals(1, later.run(), "one at a time")
        shadowOf(Looper.getMainLooper()).idle()
        assertEquals(1, later.run(), "what was wanted last")
    }

    /** The middle of the long road as it is drawn, by the columns that it fills in most rows. */
    private fun middleOfRoad(): Float {
        val seen = drawn()
        val near = view.look()!!.x(Spot.of(52.5, 13.4)).toInt()
        val columns = (10 until SIDE / 3).map { y ->
            (near - 40..near + 40).filter { seen.getPixel(it, y) == app.getColor(R.color.map_road) }
        }.groupingBy { it.firstOrNull() to it.lastOrNull() }.eachCount().maxBy { it.value }.key
        return (assertNotNull(columns.first) + assertNotNull(columns.second) + 1) / 2f
    }

    private fun assertRoadLiesWhereTheTrackDoes(moment: String) =
        assertEquals(view.look()!!.x(Spot.of(52.5, 13.4)), middleOfRoad(), 1f, moment)

    @Test
    fun `a road of the map lies where the track on it does`() {
        val later = Later()
        view.isMovable = true
        drawn(TrackPoint(52.50162, 13.4)) // between two roads that cross it
        put(town, later)
        fun painted() = assertEquals(1, later.run()).also { shadowOf(Looper.getMainLooper()).idle() }
        painted()
        assertRoadLiesWhereTheTrackDoes("painted")
        view.zoom(4.0, 150f, 100f)
        shadowOf(Looper.getMainLooper()).idle()
        painted()
        assertRoadLiesWhereTheTrackDoes("painted closer")
        clock += 1000
        touch(
            Triple(MotionEvent.ACTION_DOWN, 160f, 100f),
            Triple(MotionEvent.ACTION_MOVE, 140f, 100f),
            Triple(MotionEvent.ACTION_MOVE, 100f, 100f),
            Triple(MotionEvent.ACTION_UP, 100f, 100f),
        )
        shadowOf(Looper.getMainLooper()).idle()
        assertRoadLiesWhereTheTrackDoes("moved")
        assertEquals(0, later.run(), "it was painted again")
    }

    @Test
    fun `a bad tile leaves the others, and is forgotten where it is not seen`() {
        // North-west of the middle of the Earth there are pictures, elsewhere there are none.
        val tiles = red + byteArrayOf(1)
        val root = Maps.numbers(2, 1, 1, 1, 3, red.size.toLong(), 1, 1, 0)
        put(Maps.opened(Maps.made(root, tiles = tiles, type = 2)))
        assertEquals(RED, drawn(TrackPoint(0.0, 0.0)).getPixel(SIDE / 4, SIDE / 4))
        assertEquals(MapFault.DAMAGED, view.layer.fault)
        assertEquals(RED, drawn(TrackPoint(1.0, -1.0)).getPixel(SIDE / 4, SIDE / 4))
        assertNull(view.layer.fault)
    }

    @Test
    fun `painting ends where nobody waits for it, and says where there is too much to paint`() {
        val look = Look.at(listOf(Spot.of(52.5, 13.4)), SIDE, SIDE, 0.0, 100.0)
        assertFailsWith<CancellationException> {
            MapPainter(app).paint(town, look) { throw CancellationException("nobody waits") }
        }
        assertNull(MapPainter(app).paint(town, look) {}.fault)
        assertEquals(MapFault.TOO_MUCH, MapPainter(app).paint(town, look.zoomed(1e-9)) {}.fault)
    }

    @Test
    fun `a map of elsewhere has nothing here, though its coarse tiles are of all the Earth`() {
        fun isEmptyAt(lonDeg: Double): Boolean? {
            val bounds = mapOf(102 to 13, 106 to 52, 110 to 14, 114 to 53)
            val made = ByteBuffer.wrap(Maps.made(Maps.entry(1, red.size.toLong()), tiles = red, type = 2))
                .order(ByteOrder.LITTLE_ENDIAN)
            for ((at, degrees) in bounds) made.putInt(at, degrees * 10_000_000)
            put(Maps.opened(made.array()))
            assertEquals(RED, drawn(TrackPoint(52.5, lonDeg)).getPixel(SIDE / 4, SIDE / 4))
            return view.layer.painted?.isEmpty
        }
        assertEquals(listOf<Boolean?>(false, true), listOf(isEmptyAt(13.4), isEmptyAt(14.4)))
    }

    private val red = ByteArrayOutputStream().also {
        Bitmap.createBitmap(intArrayOf(RED), 1, 1, Bitmap.Config.ARGB_8888)
            .compress(Bitmap.CompressFormat.PNG, 0, it)
    }.toByteArray()

    @Test
    fun `where the map has no tile, its coarser one is enlarged`() {
        put(Maps.opened(Maps.made(Maps.entry(1, red.size.toLong()), tiles = red, type = 2)))
        assertEquals(RED, drawn(TrackPoint(52.5, 13.4)).getPixel(SIDE / 4, SIDE / 4))
        assertEquals(false, view.layer.painted?.isEmpty)
    }

    @Test
    fun `a map of elsewhere leaves the grid, and a damaged one says so`() {
        put(town)
        assertTrue(app.getColor(R.color.map_land) !in drawn(TrackPoint(-26.0, 27.0)).colors())
        assertEquals(true, view.layer.painted?.isEmpty)
        for (damaged in listOf("no tile", "no picture")) {
            val isPicture = damaged == "no picture"
            val tile = if (isPicture) byteArrayOf(1) else Maps.packed(byteArrayOf(1))
            put(Maps.opened(Maps.made(Maps.entry(1, tile.size.toLong()), tiles = tile, type = if (isPicture) 2 else 1)))
            assertEquals(MapFault.DAMAGED, view.layer.fault, damaged)
        }
        drawn(*road)
        val closed = town.also { it.close() }
        put(closed)
        assertEquals(MapFault.UNREADABLE, view.layer.fault)
        put(null)
        assertNull(view.layer.fault)
    }

    @Test
    fun `a screen reader has the map's source and the scale in the unit that is set`() {
        put(town)
        drawn(*road)
        val words = view.contentDescription.toString().plain()
        assertTrue("map: © Nobody & contributors made up" in words && "scale: 100 m" in words, words)
        drawn(*road, unit = SpeedUnit.MPH)
        assertTrue("scale: 200 ft" in view.contentDescription.toString().plain(), "${view.contentDescription}")
    }

    private var clock = 1000L

    private fun touch(vararg events: Triple<Int, Float, Float>) {
        val down = clock
        for ((action, x, y) in events) {
            view.onTouchEvent(MotionEvent.obtain(down, clock, action, x, y, 0))
            clock += 20
        }
    }

    private fun tap(x: Float, y: Float) =
        touch(Triple(MotionEvent.ACTION_DOWN, x, y), Triple(MotionEvent.ACTION_UP, x, y))

    /** Where the track's first place is drawn, by the end of the way that has another colour. */
    private fun columnOfWay(): Int {
        val way = app.getColor(R.color.line)
        val seen = drawn()
        return (0 until SIDE).first { x -> (0 until SIDE).count { y -> seen.getPixel(x, y) == way } > SIDE / 4 }
    }

    @Test
    fun `fingers move it and come closer, where it is movable`() {
        val north = arrayOf(TrackPoint(52.499, 13.4), TrackPoint(52.503, 13.4))
        drawn(*north)
        val drag = arrayOf(
            Triple(MotionEvent.ACTION_DOWN, 100f, 100f),
            Triple(MotionEvent.ACTION_MOVE, 140f, 100f),
            Triple(MotionEvent.ACTION_MOVE, 180f, 100f),
            Triple(MotionEvent.ACTION_UP, 180f, 100f),
        )
        val still = columnOfWay()
        touch(*drag)
        assertEquals(still, columnOfWay())
        view.isMovable = true
        view.showWhole()
        val before = columnOfWay()
        touch(*drag)
        assertEquals(before + 80, columnOfWay(), "a drag of 80 pixels")
        view.showWhole()
        assertEquals(before, columnOfWay())
        fun scale() = view.contentDescription.toString().plain().substringAfter("scale: ")
        assertEquals("100 m", scale())
        clock += 1000
        tap(200f, 200f)
        clock += 60
        tap(200f, 200f)
        assertEquals("50 m", scale())
        pinch(from = 40f, to = 160f)
        assertTrue(scale() in setOf("10 m", "20 m"), scale())
    }

    private fun pinch(from: Float, to: Float) {
        clock += 1000
        val down = clock
        val fingers = List(2) { MotionEvent.PointerProperties().apply { id = it } }.toTypedArray()
        fun event(action: Int, n: Int, apart: Float) {
            val at = List(2) { i ->
                MotionEvent.PointerCoords().apply {
                    x = 200f + if (i == 0) -apart else apart
                    y = 200f
                }
            }.toTypedArray()
            view.onTouchEvent(MotionEvent.obtain(down, clock, action, n, fingers, at, 0, 0, 1f, 1f, 0, 0, 0, 0))
            clock += 20
        }
        val second = 1 shl MotionEvent.ACTION_POINTER_INDEX_SHIFT
        event(MotionEvent.ACTION_DOWN, 1, from)
        event(MotionEvent.ACTION_POINTER_DOWN or second, 2, from)
        for (i in 1..10) event(MotionEvent.ACTION_MOVE, 2, from + (to - from) * i / 10)
        event(MotionEvent.ACTION_POINTER_UP or second, 2, to)
        event(MotionEvent.ACTION_UP, 1, to)
    }

    private companion object {
        const val SIDE = 400
        const val SCALE_Y = 16 // within the scale, which stands at the top
        const val RED = 0xFFFF0000.toInt()
    }
}
