package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.util.AttributeSet
import android.view.View
import dev.fieldmesh.app.R
import kotlin.math.ceil

/** A chart: its name and a figure above, in two rows where one has no room, and the ends of its scale at its side. */
abstract class ScaledView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val ground = context.fill(R.color.surface)
    private val rule = context.stroke(R.color.line, 1f)
    private val figure = context.lettering(R.color.text, 16f)
    protected val small = context.lettering(R.color.text_soft, 14f)
    protected val edge = context.dp(10f)
    private var label = ""
    private var newest = ""
    private var bottomWords = ""
    private var topWords = ""
    private var low = 0.0
    private var high = 1.0

    /** The room below the scale, for what the other axis says. */
    protected open val foot get() = 0f

    /** [least] is the least range that is shown; what of [values] lies outside widens it. */
    protected fun frame(
        label: String,
        newest: String,
        values: List<Double>,
        least: ClosedFloatingPointRange<Double>,
        words: (Double) -> String,
    ) {
        this.label = label
        this.newest = newest
        low = minOf(least.start, values.minOrNull() ?: least.start)
        high = maxOf(least.endInclusive, values.maxOrNull() ?: least.endInclusive)
        bottomWords = words(low)
        topWords = words(high)
        contentDescription = "$label: $newest"
        if (width > 0 && height != highFor(width)) requestLayout()
        invalidate()
    }

    override fun onMeasure(width: Int, height: Int) {
        val wide = MeasureSpec.getSize(width)
        setMeasuredDimension(wide, highFor(wide))
    }

    private fun highFor(wide: Int): Int {
        val scale = maxOf(context.dp(LEAST_DP), small.textSize * 2.4f)
        return ceil(head(wide) + scale + foot + edge).toInt()
    }

    private fun rows(wide: Int) = if (small.measureText(label) + figure.measureText(newest) + 3 * edge > wide) 2 else 1

    private fun head(wide: Int) = edge * 2 + figure.textSize * (0.8f + 1.2f * (rows(wide) - 1))

    override fun onDraw(canvas: Canvas) {
        canvas.drawRoundRect(0f, 0f, width.toFloat(), height.toFloat(), edge, edge, ground)
        val base = edge + figure.textSize * 0.8f
        canvas.drawText(label, edge, base, small)
        val second = base + figure.textSize * 1.2f * (rows(width) - 1)
        canvas.drawText(newest, width - edge - figure.measureText(newest), second, figure)
        val top = head(width)
        val bottom = height - edge - foot
        canvas.drawText(topWords, edge, top + small.textSize * 0.8f, small)
        canvas.drawText(bottomWords, edge, bottom, small)
        val left = 2 * edge + maxOf(small.measureText(topWords), small.measureText(bottomWords))
        for (y in listOf(top, bottom)) canvas.drawLine(left, y, width - edge, y, rule)
        drawValues(canvas, left, width - edge) { bottom - ((it - low) / (high - low)).toFloat() * (bottom - top) }
    }

    /** Draws the values between [left] and [right]; [y] is where a value stands. */
    protected abstract fun drawValues(canvas: Canvas, left: Float, right: Float, y: (Double) -> Float)

    private companion object {
        const val LEAST_DP = 40f
    }
}
