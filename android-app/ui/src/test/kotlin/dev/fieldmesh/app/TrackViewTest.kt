package dev.fieldmesh.app

import android.graphics.Bitmap
import android.graphics.Canvas
import dev.fieldmesh.app.view.TrackView
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

    /** The colour half-way between two places. */
    private fun halfWay(afterGap: Boolean): Int {
        val places = listOf(TrackPoint(50.0, 8.0, 1e7), TrackPoint(50.0, 8.01, 1e7, afterGap))
        view.show(TrackState(places))
        val bitmap = Bitmap.createBitmap(SIDE, SIDE, Bitmap.Config.ARGB_8888)
        view.draw(Canvas(bitmap))
        return bitmap.getPixel(SIDE / 2, SIDE / 2)
    }

    @Test
    fun `the way across a gap has no measured colour`() {
        assertEquals(app.getColor(R.color.line), halfWay(afterGap = true))
        assertNotEquals(app.getColor(R.color.line), halfWay(afterGap = false))
    }

    private companion object {
        const val SIDE = 400
    }
}
