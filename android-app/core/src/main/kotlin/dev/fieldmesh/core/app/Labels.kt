package dev.fieldmesh.core.app

/** A rectangle on a screen, in pixels; y grows downwards. */
data class Box(val left: Float, val top: Float, val right: Float, val bottom: Float) {
    fun meets(other: Box) = left < other.right && other.left < right && top < other.bottom && other.top < bottom
}

/**
 * Finds places for words beside their symbols on a view of [width] by [height]
 * pixels, so that none covers other words, a symbol, or the view's edge.
 */
class Labels(private val width: Float, private val height: Float) {
    private val taken = mutableListOf<Box>()

    /** Keeps words off a symbol, or off what is written there already. */
    fun keepFree(box: Box) {
        taken += box
    }

    /**
     * The place for words of [wide] by [high] pixels beside [symbol], the nearest
     * that is free; null where there is none: the symbol stands without words then.
     */
    fun place(symbol: Box, wide: Float, high: Float): Box? {
        val near = (0 until ROWS).asSequence().flatMap { row -> around(symbol, wide, high, row * high) }
        return near.firstOrNull(::isFree)?.also(::keepFree)
    }

    private fun isFree(box: Box) =
        box.left >= 0 && box.top >= 0 && box.right <= width && box.bottom <= height && taken.none(box::meets)

    private fun around(symbol: Box, wide: Float, high: Float, away: Float): Sequence<Box> {
        val middle = (symbol.left + symbol.right - wide) / 2
        val sides = if (width >
            wide
        ) {
            listOf(middle.coerceIn(0f, width - wide), symbol.right, symbol.left - wide)
        } else {
            listOf(0f)
        }
        val rows = listOf(symbol.bottom + away, symbol.top - away - high)
        return sides.asSequence().flatMap { left -> rows.map { top -> Box(left, top, left + wide, top + high) } }
    }

    private companion object {
        /** Words that are further from their symbol than this many lines are not seen as its own. */
        const val ROWS = 3
    }
}
