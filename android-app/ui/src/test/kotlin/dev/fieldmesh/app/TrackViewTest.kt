package dev.fieldmesh.app

import android.graphics.Bitmap
import android.graphics.Canvas
import dev.fieldmesh.app.view.TrackView
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.app.TrackPoint
import dev.fieldmesh.core.app.TrackState
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import kotlin.test.Test
import kotlin.test.assertEquals
import kotlin.test.assertNotEquals

@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class TrackViewTest {
    private val app = RuntimeEnvironment.getApplication()
    private val view = TrackView(app, null).apply { layout(0, 0, SIDE, SIDE) }

    private fun drawn(vararg places: TrackPoint): Bitmap {
        view.show(TrackState(places.toList()), SpeedUnit.KMH)
        return Bitmap.createBitmap(SIDE, SIDE, Bitmap.Config.ARGB_8888).also { view.draw(Canvas(it)) }
    }

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

    private companion object {
        const val SIDE = 400
        const val SCALE_Y = 16 // within the scale, which stands at the top
    }
}
