package dev.fieldmesh.app.view

import android.animation.ArgbEvaluator
import android.content.Context
import android.graphics.Paint
import android.util.TypedValue
import dev.fieldmesh.app.R

internal fun Context.dp(value: Float) =
    TypedValue.applyDimension(TypedValue.COMPLEX_UNIT_DIP, value, resources.displayMetrics)

internal fun Context.sp(value: Float) =
    TypedValue.applyDimension(TypedValue.COMPLEX_UNIT_SP, value, resources.displayMetrics)

internal fun Context.fill(color: Int) = Paint(Paint.ANTI_ALIAS_FLAG).also { it.color = getColor(color) }

/** The colour of a share of the most: from orange to blue, which who is red-green blind tells apart. */
internal fun Context.ramp(share: Float): Int =
    ArgbEvaluator().evaluate(share.coerceIn(0f, 1f), getColor(R.color.least), getColor(R.color.most)) as Int

internal fun Context.stroke(color: Int, widthDp: Float) = fill(color).also {
    it.style = Paint.Style.STROKE
    it.strokeWidth = dp(widthDp)
    it.strokeCap = Paint.Cap.ROUND
    it.strokeJoin = Paint.Join.ROUND
}

internal fun Context.lettering(color: Int, sizeSp: Float) = fill(color).also { it.textSize = sp(sizeSp) }

/** For the names that a map has. */
internal fun Context.mapLettering() = lettering(R.color.text_soft, 12f)

/** What is drawn below words, so that they are read on whatever lies under them. */
internal fun Context.halo(of: Paint) = stroke(R.color.surface, 3f).also { it.textSize = of.textSize }
