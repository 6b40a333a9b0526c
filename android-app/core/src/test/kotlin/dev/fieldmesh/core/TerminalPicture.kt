package dev.fieldmesh.core

import dev.fieldmesh.core.scan.GrayPicture
import java.nio.ByteBuffer
import java.util.Random
import kotlin.math.PI
import kotlin.math.cos
import kotlin.math.sin

/** How a camera sees a terminal: all that goes wrong between a picture of half blocks and a sensor's pixels. */
data class View(
    val width: Int = 1280,
    val height: Int = 720,
    /** Pixels to a module in the middle of the picture. */
    val module: Double = 10.0,
    val turnDeg: Double = 0.0,
    /** The screen leans away: its far edge is so much smaller than its middle. */
    val lean: Double = 0.0,
    /** Height of half a terminal's cell in its widths. */
    val tall: Double = 1.0,
    /** Share of each line of text that stays dark, as between the lines of some terminals. */
    val lineGap: Double = 0.0,
    val noise: Double = 0.0,
    /** How much darker the left edge is than the right, of 1. */
    val shade: Double = 0.0,
    val darkOnLight: Boolean = false,
    /** Bytes beyond each row, which cameras leave between them. */
    val padding: Int = 0,
)

/**
 * The lines of half blocks that `fieldmesh keys pair` prints, seen through a
 * camera, as the bytes of the bright plane that Android hands out.
 */
class TerminalPicture(text: String) {
    private val lines = text.trimEnd('\n').lines()
    private val columns = lines.maxOf { it.length }

    fun seen(view: View, seed: Long = 1): GrayPicture {
        val stride = view.width + view.padding
        // The last row ends with its last pixel, as it does on many phones.
        val plane = ByteArray(stride * (view.height - 1) + view.width)
        val random = Random(seed)
        val turn = view.turnDeg * PI / 180
        val (right, down) = cos(turn) to sin(turn)
        for (y in 0 until view.height) {
            for (x in 0 until view.width) {
                val light = (0..3).sumOf { at(x + (it % 2) * 0.5, y + (it / 2) * 0.5, right, down, view) } / 4
                val lit = (30 + 190 * light) * (1 - view.shade * (1 - x.toDouble() / view.width))
                plane[y * stride + x] = (lit + random.nextGaussian() * view.noise).coerceIn(0.0, 255.0).toInt().toByte()
            }
        }
        return GrayPicture.of(ByteBuffer.wrap(plane), view.width, view.height, stride)
    }

    /** How light the screen is, from 0 to 1, that a sensor's point looks at. */
    private fun at(px: Double, py: Double, right: Double, down: Double, view: View): Double {
        val x = (px - view.width / 2) / view.module
        val y = (py - view.height / 2) / view.module
        val u = x * right + y * down
        val v = -x * down + y * right
        val depth = 1 - view.lean * v / lines.size
        val column = u / depth + columns / 2.0
        val row = (v / depth / view.tall + lines.size) / 2
        if (column !in 0.0..<columns.toDouble() ||
            row !in 0.0..<lines.size.toDouble()
        ) {
            return if (view.darkOnLight) 1.0 else 0.0
        }
        val within = row - row.toInt()
        val block = lines[row.toInt()].getOrElse(column.toInt()) { ' ' }
        val drawn = within >= view.lineGap && (block == '█' || block == if (within < 0.5) '▀' else '▄')
        return if (drawn != view.darkOnLight) 1.0 else 0.0
    }
}
