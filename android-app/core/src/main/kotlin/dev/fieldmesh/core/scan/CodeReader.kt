package dev.fieldmesh.core.scan

import com.google.zxing.BinaryBitmap
import com.google.zxing.DecodeHintType
import com.google.zxing.LuminanceSource
import com.google.zxing.PlanarYUVLuminanceSource
import com.google.zxing.ReaderException
import com.google.zxing.common.HybridBinarizer
import com.google.zxing.qrcode.QRCodeReader
import java.nio.ByteBuffer
import kotlin.math.min

/** The bright part of a picture, a byte a pixel from dark to light, row by row without gaps. */
class GrayPicture(val pixels: ByteArray, val width: Int, val height: Int) {
    init {
        require(pixels.size == width * height) { "${pixels.size} pixels for a picture of $width by $height" }
    }

    /** The same at half the size: four pixels become their mean, which halves a sensor's noise. */
    fun halved(): GrayPicture {
        val (w, h) = width / 2 to height / 2
        val light = { x: Int, y: Int -> pixels[y * width + x].toInt() and 0xff }
        val means = ByteArray(w * h) {
            val (x, y) = it % w * 2 to it / w * 2
            ((light(x, y) + light(x + 1, y) + light(x, y + 1) + light(x + 1, y + 1)) / 4).toByte()
        }
        return GrayPicture(means, w, h)
    }

    companion object {
        /**
         * Takes a plane as cameras give it: its rows are [rowStride] bytes apart, the last may end with its
         * last pixel.
         */
        fun of(plane: ByteBuffer, width: Int, height: Int, rowStride: Int): GrayPicture {
            val from = plane.duplicate()
            val pixels = ByteArray(width * height)
            val between = ByteArray(rowStride - width)
            for (row in 0 until height) {
                if (row > 0) from.get(between)
                from.get(pixels, row * width, width)
            }
            return GrayPicture(pixels, width, height)
        }
    }
}

/** Reads QR codes in a camera's pictures, whichever way up they are. */
object CodeReader {
    /** What the picture's code says; null where none can be read. */
    fun read(picture: GrayPicture): String? = readAsItIs(picture)
        ?: if (min(picture.width, picture.height) < LEAST_TO_HALVE) null else readAsItIs(picture.halved())

    private fun readAsItIs(picture: GrayPicture): String? {
        val source =
            PlanarYUVLuminanceSource(
                picture.pixels,
                picture.width,
                picture.height,
                0,
                0,
                picture.width,
                picture.height,
                false,
            )
        // On a terminal with a light ground the code of `fieldmesh keys pair` is light on dark.
        return read(source) ?: read(source.invert())
    }

    private fun read(source: LuminanceSource): String? = try {
        QRCodeReader().decode(BinaryBitmap(HybridBinarizer(source)), HINTS).text
    } catch (_: ReaderException) {
        null
    }

    /** Pixels; a code of the least version has 21 modules a side, and a module needs a few. */
    private const val LEAST_TO_HALVE = 128
    private val HINTS = mapOf(DecodeHintType.TRY_HARDER to true)
}
