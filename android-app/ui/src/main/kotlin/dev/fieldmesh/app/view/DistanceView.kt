package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.util.AttributeSet
import android.view.View
import dev.fieldmesh.app.R

/** What was measured between two distances; null where it is not known. */
data class Bar(val fromM: Double, val toM: Double, val value: Double?)

/**
 * A number by distance: a line for each stretch at its value, its name and range above, the distances below. A stretch
 * without a value has no line.
 */
class DistanceView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val ground = context.fill(R.color.surface)
    private val line = context.stroke(R.color.accent, 4f)
    private val rule = context.stroke(R.color.line, 1f)
    private val name = context.lettering(R.color.text_soft, 14f)
    private val figure = context.lettering(R.color.text, 14f)
    private var label = ""
    private var range = ""
    private var bars: List<Bar> = emptyList()
    private var low = 0.0
    private var high = 1.0

    /** [low] and [high] are the least range that is shown; what lies outside widens it. */
    fun show(label: String, bars: List<Bar>, low: Double, high: Double, words: (Double) -> String) {
        val known = bars.mapNotNull { it.value }
        this.label = label
        this.bars = bars
        this.low = minOf(low, known.minOrNull() ?: low)
        this.high = maxOf(high, known.maxOrNull() ?: high)
        range = when {
            known.isEmpty() -> context.getString(R.string.exp_chart_unknown)
            else -> context.getString(R.string.exp_chart_range, words(known.min()), words(known.max()))
        }
        contentDescription = "$label: $range"
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        val edge = context.dp(10f)
        canvas.drawRoundRect(0f, 0f, width.toFloat(), height.toFloat(), edge, edge, ground)
        val base = edge + figure.textSize * 0.8f
        canvas.drawText(label, edge, base, name)
        canvas.drawText(range, width - edge - figure.measureText(range), base, figure)
        val foot = height - edge * 0.6f
        val bottom = foot - name.textSize
        drawBars(canvas, edge, base + edge, bottom - edge * 0.4f)
        canvas.drawLine(edge, bottom, width - edge, bottom, rule)
        val far = context.getString(R.string.exp_chart_m, farM)
        canvas.drawText(context.getString(R.string.exp_chart_m, 0.0), edge, foot, name)
        canvas.drawText(far, width - edge - name.measureText(far), foot, name)
    }

    private val farM get() = bars.maxOfOrNull { it.toM } ?: 0.0

    private fun drawBars(canvas: Canvas, edge: Float, top: Float, bottom: Float) {
        val wide = (width - 2 * edge) / farM.coerceAtLeast(1.0)
        for (bar in bars) {
            val value = bar.value ?: continue
            val y = bottom - ((value - low) / (high - low)).toFloat() * (bottom - top)
            canvas.drawLine(edge + (bar.fromM * wide).toFloat(), y, edge + (bar.toM * wide).toFloat(), y, line)
        }
    }
}
