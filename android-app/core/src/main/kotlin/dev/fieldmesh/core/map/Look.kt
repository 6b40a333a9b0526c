package dev.fieldmesh.core.map

import kotlin.math.PI
import kotlin.math.abs
import kotlin.math.asinh
import kotlin.math.atan
import kotlin.math.ceil
import kotlin.math.cosh
import kotlin.math.floor
import kotlin.math.log2
import kotlin.math.pow
import kotlin.math.roundToInt
import kotlin.math.sinh
import kotlin.math.tan

/** A place in Web Mercator: from 0 in the west and north to 1 in the east and south. */
data class Spot(val x: Double, val y: Double) {
    /** Metres on the ground that are as wide here as the whole map at the equator. */
    internal val metresOfMap get() = EQUATOR_M / cosh(PI * (1 - 2 * y))

    val latDeg get() = atan(sinh(PI * (1 - 2 * y))) * 180 / PI

    companion object {
        private const val EQUATOR_M = 2 * PI * 6_378_137 // of EPSG:3857
        private const val LAT_MOST = 85.05 // where square maps of the Earth end

        fun of(latDeg: Double, lonDeg: Double): Spot {
            val lat = latDeg.coerceIn(-LAT_MOST, LAT_MOST) * PI / 180
            return Spot((lonDeg + 180) / 360, (1 - asinh(tan(lat)) / PI) / 2)
        }
    }
}

/** A length that is round in its unit, and how long it is on a view. */
data class ScaleBar(val number: Int, val unit: Unit, val px: Double) {
    enum class Unit(val symbol: String, val metres: Double) {
        METRE("m", 1.0),
        KILOMETRE("km", 1000.0),
        FOOT("ft", 0.3048),
        MILE("mi", 1609.344),
    }

    override fun toString() = "$number\u00A0${unit.symbol}"
}

/** What is seen of the Earth on a view of [width] by [height] pixels, north up: [mapPx] is the width of all of it. */
data class Look(val middle: Spot, val mapPx: Double, val width: Int, val height: Int) {
    val metresPerPx get() = middle.metresOfMap / mapPx

    fun x(at: Spot): Float = (width / 2.0 + (at.x - middle.x) * mapPx).toFloat()

    fun y(at: Spot): Float = (height / 2.0 + (at.y - middle.y) * mapPx).toFloat()

    fun spot(x: Float, y: Float) = Spot(middle.x + (x - width / 2.0) / mapPx, middle.y + (y - height / 2.0) / mapPx)

    /** With what is at a place on the view [right] and [down] of it afterwards. */
    fun moved(right: Float, down: Float) = copy(middle = spot(width / 2f - right, height / 2f - down).onEarth())

    /** Closer by [factor]; what is at ([x], [y]) stays there. */
    fun zoomed(factor: Double, x: Float = width / 2f, y: Float = height / 2f): Look {
        val at = spot(x, y)
        val px = (mapPx * factor).coerceIn(LEAST_PX, at.onEarth().metresOfMap / LEAST_M_PER_PX)
        val there = copy(middle = at, mapPx = px)
        return there.copy(middle = there.spot(width - x, height - y).onEarth())
    }

    /** With as much more on each side as [share] of the width and the height. */
    fun wider(share: Double) =
        copy(width = (width * (1 + 2 * share)).roundToInt(), height = (height * (1 + 2 * share)).roundToInt())

    /** Whether all that another one sees is seen, too, at nearly its scale. */
    fun holds(other: Look): Boolean {
        val (west, north) = other.spot(0f, 0f)
        val (east, south) = other.spot(other.width.toFloat(), other.height.toFloat())
        val first = spot(0f, 0f)
        val last = spot(width.toFloat(), height.toFloat())
        return other.mapPx / mapPx in 1 / NEARLY..NEARLY &&
            west >= first.x &&
            north >= first.y &&
            east <= last.x &&
            south <= last.y
    }

    /** Whether anything is seen of what lies between these degrees: west, south, east and north. */
    fun meets(bounds: List<Double>): Boolean {
        val (west, south, east, north) = bounds
        if (west >= east || south >= north) return true // the map does not say it
        val first = Spot.of(north, west)
        val last = Spot.of(south, east)
        return x(first) < width && x(last) > 0 && y(first) < height && y(last) > 0
    }

    /**
     * The tiles that are seen, at the zoom at which they are about [tilePx] wide, if the map has that; null if they
     * are too many to be drawn.
     */
    fun tiles(zooms: IntRange, tilePx: Double): List<TileAt>? {
        val zoom = log2(mapPx / tilePx).roundToInt().coerceIn(zooms)
        val side = 2.0.pow(zoom)
        fun range(first: Double, last: Double) =
            floor(first * side).toInt().coerceAtLeast(0)..(ceil(last * side).toInt() - 1).coerceAtMost(side.toInt() - 1)
        val from = spot(0f, 0f)
        val to = spot(width.toFloat(), height.toFloat())
        val rows = range(from.y, to.y)
        val columns = range(from.x, to.x)
        if ((rows.last - rows.first + 1L) * (columns.last - columns.first + 1L) > TILES_MOST) return null
        return rows.flatMap { y -> columns.map { x -> TileAt(zoom, x, y) } }
    }

    /** The longest scale bar that fits in [mostPx]. */
    fun bar(mostPx: Double, isImperial: Boolean): ScaleBar {
        val most = mostPx * metresPerPx
        val (small, large) = when {
            isImperial -> ScaleBar.Unit.FOOT to ScaleBar.Unit.MILE
            else -> ScaleBar.Unit.METRE to ScaleBar.Unit.KILOMETRE
        }
        val unit = if (most >= large.metres) large else small
        val number = STEPS.last { it == 1 || it * unit.metres <= most }
        return ScaleBar(number, unit, number * unit.metres / metresPerPx)
    }

    private fun Spot.onEarth() = Spot(x.coerceIn(0.0, 1.0), y.coerceIn(0.0, 1.0))

    companion object {
        private const val LEAST_PX = 256.0
        private const val LEAST_M_PER_PX = 0.02 // so that a scale bar has room for a metre
        private const val NEARLY = 1.3
        private const val TILES_MOST = 256
        private val STEPS = (0..4).flatMap { e -> listOf(1, 2, 5).map { it * 10.0.pow(e).toInt() } }

        /** All [places] within a view, with [edgePx] around them; never closer than [leastM] across. */
        fun at(places: List<Spot>, width: Int, height: Int, edgePx: Double, leastM: Double): Look {
            val west = places.minOf { it.x }
            val east = places.maxOf { it.x }
            val north = places.minOf { it.y }
            val south = places.maxOf { it.y }
            val middle = Spot((west + east) / 2, (north + south) / 2)
            fun room(px: Int, span: Double) = (px - 2 * edgePx).coerceAtLeast(1.0) / abs(span).coerceAtLeast(1e-12)
            val closest = minOf(width, height) * middle.metresOfMap / leastM
            val px = minOf(room(width, east - west), room(height, south - north), closest)
            return Look(middle, px.coerceIn(LEAST_PX, middle.metresOfMap / LEAST_M_PER_PX), width, height)
        }
    }
}
