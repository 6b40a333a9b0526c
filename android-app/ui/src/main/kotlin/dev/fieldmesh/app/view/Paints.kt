package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Paint
import android.util.TypedValue

internal fun Context.dp(value: Float) =
    TypedValue.applyDimension(TypedValue.COMPLEX_UNIT_DIP, value, resources.displayMetrics)

internal fun Context.sp(value: Float) =
    TypedValue.applyDimension(TypedValue.COMPLEX_UNIT_SP, value, resources.displayMetrics)

internal fun Context.fill(color: Int) = Paint(Paint.ANTI_ALIAS_FLAG).also { it.color = getColor(color) }

internal fun Context.stroke(color: Int, widthDp: Float) = fill(color).also {
    it.style = Paint.Style.STROKE
    it.strokeWidth = dp(widthDp)
    it.strokeCap = Paint.Cap.ROUND
    it.strokeJoin = Paint.Join.ROUND
}

internal fun Context.lettering(color: Int, sizeSp: Float) = fill(color).also { it.textSize = sp(sizeSp) }
