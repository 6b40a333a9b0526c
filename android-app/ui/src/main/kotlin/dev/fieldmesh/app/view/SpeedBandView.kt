package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.Path
import android.util.AttributeSet
import android.view.View
import dev.fieldmesh.app.R
import dev.fieldmesh.core.cue.Band
import dev.fieldmesh.core.cue.Zone

/**
 * The speed as a needle over a bar on which the band is marked in the middle.
 * It shows six half widths to each side: far off the needle stands at the end.
 * A screen reader passes it over: the figure above says the same in words.
 */
class SpeedBandView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val bar = context.fill(R.color.surface)
    private val within = context.fill(R.color.good)
    private val rim = context.stroke(R.color.line, 1f)
    private val needles = mapOf(
        Zone.BELOW to context.fill(R.color.warn),
        Zone.ABOVE to context.fill(R.color.bad),
        Zone.WITHIN to context.fill(R.color.text),
        Zone.UNKNOWN to context.fill(R.color.line),
    )
    private val needle = Path()
    private var band: Band? = null
    private var speedMps: Double? = null

    fun show(band: Band?, speedMps: Double?) {
        if (band == this.band && speedMps == this.speedMps) return
        this.band = band
        this.speedMps = speedMps
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        val margin = context.dp(12f)
        val left = margin
        val right = width - margin
        val top = context.dp(22f)
        val bottom = height - context.dp(6f)
        canvas.drawRoundRect(left, top, right, bottom, margin / 2, margin / 2, bar)
        val b = band
        if (b != null) {
            val half = (right - left) / 2 / SPAN
            val middle = (left + right) / 2
            canvas.drawRect(middle - half, top, middle + half, bottom, within)
            speedMps?.let { drawNeedle(canvas, middle + off(b, it) * half, bottom, needles.getValue(b.zone(it))) }
        }
        canvas.drawRoundRect(left, top, right, bottom, margin / 2, margin / 2, rim)
    }

    /** How far a speed is off the target, in half widths of the band. */
    private fun off(b: Band, speed: Double) =
        ((speed - b.targetMps) / b.halfWidthMps).coerceIn(-SPAN.toDouble(), SPAN.toDouble()).toFloat()

    private fun drawNeedle(canvas: Canvas, x: Float, bottom: Float, paint: Paint) {
        val wide = context.dp(12f)
        needle.reset()
        needle.moveTo(x - wide, 0f)
        needle.lineTo(x + wide, 0f)
        needle.lineTo(x, context.dp(22f))
        needle.close()
        canvas.drawPath(needle, paint)
        canvas.drawRect(x - wide / 6, 0f, x + wide / 6, bottom, paint)
    }

    private companion object {
        const val SPAN = 6f
    }
}
