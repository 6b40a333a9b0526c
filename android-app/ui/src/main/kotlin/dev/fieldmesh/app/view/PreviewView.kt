package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Bitmap
import android.graphics.Canvas
import android.graphics.Color
import android.graphics.Matrix
import android.graphics.Paint
import android.util.AttributeSet
import android.view.View
import dev.fieldmesh.device.Shot
import java.nio.ByteBuffer

/** What the camera sees, grey: the very pictures that are searched for a code. */
class PreviewView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val light = Paint(Paint.FILTER_BITMAP_FLAG).apply { color = Color.WHITE }
    private val place = Matrix()
    private var bitmap: Bitmap? = null
    private var turnDeg = 0

    fun show(shot: Shot) {
        val picture = shot.picture
        val same = bitmap?.takeIf { it.width == picture.width && it.height == picture.height }
        // How bright a pixel is becomes how much white covers the black ground there.
        val now = same ?: Bitmap.createBitmap(picture.width, picture.height, Bitmap.Config.ALPHA_8)
        now.copyPixelsFromBuffer(ByteBuffer.wrap(picture.pixels))
        bitmap = now
        turnDeg = shot.turnDeg
        invalidate()
    }

    override fun onDraw(canvas: Canvas) {
        canvas.drawColor(Color.BLACK)
        val b = bitmap ?: return
        val lying = turnDeg % 180 != 0
        val wide = if (lying) b.height else b.width
        val high = if (lying) b.width else b.height
        val scale = minOf(width.toFloat() / wide, height.toFloat() / high)
        place.setTranslate(-b.width / 2f, -b.height / 2f)
        place.postRotate(turnDeg.toFloat())
        place.postScale(scale, scale)
        place.postTranslate(width / 2f, height / 2f)
        canvas.drawBitmap(b, place, light)
    }
}
