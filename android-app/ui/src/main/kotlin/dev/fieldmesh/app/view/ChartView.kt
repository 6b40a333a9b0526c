package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.graphics.Path
import android.util.AttributeSet
import dev.fieldmesh.app.R
import dev.fieldmesh.core.drive.Point

/** The last half minute of a value, the newest at the right. Gaps stay gaps. */
class ChartView(context: Context, attributes: AttributeSet?) : ScaledView(context, attributes) {
    private val line = context.stroke(R.color.accent, 2.5f)
    private val path = Path()
    private var points: List<Point> = emptyList()

    /** [least] is the least range that is shown; what lies outside widens it. */
    fun show(
        label: String,
        newest: String,
        points: List<Point>,
        least: ClosedFloatingPointRange<Double>,
        words: (Double) -> String,
    ) {
        this.points = points
        frame(label, newest, points.map { it.value }, least, words)
    }

    override fun drawValues(canvas: Canvas, left: Float, right: Float, y: (Double) -> Float) {
        val last = points.lastOrNull() ?: return
        path.reset()
        var before: Point? = null
        for (p in points) {
            val x = right - (last.bootNs - p.bootNs) / SPAN_NS.toFloat() * (right - left)
            val old = before
            val at = y(p.value)
            if (old == null || p.bootNs - old.bootNs > GAP_NS) path.moveTo(x, at)
            path.lineTo(x, at) // also to where it is: a value between two gaps is a dot
            before = p
        }
        canvas.drawPath(path, line)
    }

    private companion object {
        const val SPAN_NS = 30_000_000_000L
        const val GAP_NS = 2_500_000_000L
    }
}
