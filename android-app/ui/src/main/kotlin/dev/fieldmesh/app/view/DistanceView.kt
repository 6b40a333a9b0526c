package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.util.AttributeSet
import dev.fieldmesh.app.R

/** What was measured between two distances; null where it is not known. */
data class Bar(val fromM: Double, val toM: Double, val value: Double?)

/**
 * A number by distance: a line for each stretch at its value, the range of what was measured above, the distances
 * below. A stretch without a value has no line.
 */
class DistanceView(context: Context, attributes: AttributeSet?) : ScaledView(context, attributes) {
    private val line = context.stroke(R.color.accent, 4f)
    private var bars: List<Bar> = emptyList()
    override val foot get() = small.textSize

    /** [least] is the least range that is shown; what lies outside widens it. */
    fun show(label: String, bars: List<Bar>, least: ClosedFloatingPointRange<Double>, words: (Double) -> String) {
        val known = bars.mapNotNull { it.value }
        this.bars = bars
        val range = when {
            known.isEmpty() -> context.getString(R.string.exp_chart_unknown)
            else -> context.getString(R.string.exp_chart_range, words(known.min()), words(known.max()))
        }
        frame(label, range, known, least, words)
    }

    override fun drawValues(canvas: Canvas, left: Float, right: Float, y: (Double) -> Float) {
        val farM = bars.maxOfOrNull { it.toM } ?: 0.0
        val far = context.getString(R.string.exp_chart_m, farM)
        val base = height - edge * 0.6f
        canvas.drawText(context.getString(R.string.exp_chart_m, 0.0), left, base, small)
        canvas.drawText(far, right - small.measureText(far), base, small)
        val wide = (right - left) / farM.coerceAtLeast(1.0)
        for (bar in bars) {
            val at = y(bar.value ?: continue)
            canvas.drawLine(left + (bar.fromM * wide).toFloat(), at, left + (bar.toM * wide).toFloat(), at, line)
        }
    }
}
