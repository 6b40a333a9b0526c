package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.graphics.Path
import android.util.AttributeSet
import android.view.View
import dev.fieldmesh.app.R
import dev.fieldmesh.core.drive.Point

/** The last half minute of a value: its name and newest figure above, its line below. Gaps stay gaps. */
class ChartView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val ground = context.fill(R.color.surface)
    private val line = context.stroke(R.color.accent, 2.5f)
    private val name = context.lettering(R.color.text_soft, 14f)
    private val figure = context.lettering(R.color.text, 17f)
    private val path = Path()
    private var label = ""
    private var newest = ""
    private var points: List<Point> = emptyList()
    private var low = 0.0
    private var high = 1.0

    /** [low] and [high] are the least range that is shown; what lies outside widens it. */
    fun show(label: String, newest: String, points: List<Point>, low: Double, high: Double) {
        this.label = label
        this.newest = newest
        this.points = points
        this.low = minOf(low, points.minOfOrNull { it.value } ?: low)
        this.high = maxOf(high, points.maxOfOrNull { it.value } ?: high)
        contentDescription = "$label: $newest"
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        val edge = context.dp(10f)
        canvas.drawRoundRect(0f, 0f, width.toFloat(), height.toFloat(), edge, edge, ground)
        val base = edge + figure.textSize * 0.8f
        canvas.drawText(label, edge, base, name)
        canvas.drawText(newest, width - edge - figure.measureText(newest), base, figure)
        drawLine(canvas, edge, base + edge * 0.6f, height - edge)
    }

    private fun drawLine(canvas: Canvas, edge: Float, top: Float, bottom: Float) {
        val last = points.lastOrNull() ?: return
        path.reset()
        var before: Point? = null
        for (p in points) {
            val x = width - edge - (last.bootNs - p.bootNs) / SPAN_NS.toFloat() * (width - 2 * edge)
            val y = bottom - ((p.value - low) / (high - low)).toFloat() * (bottom - top)
            val old = before
            if (old == null || p.bootNs - old.bootNs > GAP_NS) path.moveTo(x, y) else path.lineTo(x, y)
            before = p
        }
        canvas.drawPath(path, line)
    }

    private companion object {
        const val SPAN_NS = 30_000_000_000L
        const val GAP_NS = 2_500_000_000L
    }
}
