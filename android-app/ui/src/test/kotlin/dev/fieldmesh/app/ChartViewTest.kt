package dev.fieldmesh.app

import android.graphics.Bitmap
import android.graphics.Canvas
import dev.fieldmesh.app.view.ChartView
import dev.fieldmesh.core.drive.Point
import org.junit.runner.RunWith
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.annotation.Config
import kotlin.test.Test
import kotlin.test.assertEquals

@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class ChartViewTest {
    private val app = RuntimeEnvironment.getApplication()
    private val view = ChartView(app, null)

    /** How many separate marks values at these seconds leave across the chart's middle. */
    private fun marks(vararg seconds: Double): Int {
        view.show("Signal", "", seconds.map { Point((it * 1e9).toLong(), 0.5) }, 0.0..1.0) { "" }
        view.measure(WIDTH, 0)
        view.layout(0, 0, view.measuredWidth, view.measuredHeight)
        val picture = Bitmap.createBitmap(view.width, view.height, Bitmap.Config.ARGB_8888)
        view.draw(Canvas(picture))
        val drawn = (0 until view.width).map { x ->
            (0 until view.height).any { picture.getPixel(x, it) == app.getColor(R.color.accent) }
        }
        return drawn.zipWithNext().count { (before, here) -> here && !before }
    }

    @Test
    fun `a value between two gaps is seen`() {
        assertEquals(4, marks(0.0, 3.0, 6.0, 9.0))
        assertEquals(1, marks(0.0))
    }

    @Test
    fun `values in a row are one line, and a gap parts two`() {
        assertEquals(1, marks(0.0, 1.0, 2.0))
        assertEquals(2, marks(0.0, 1.0, 6.0, 7.0))
    }

    private companion object {
        const val WIDTH = 400
    }
}
