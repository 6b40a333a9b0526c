package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.graphics.Canvas
import android.graphics.DashPathEffect
import android.graphics.Paint
import android.graphics.Path
import android.graphics.Rect
import android.graphics.RectF
import dev.fieldmesh.app.R
import dev.fieldmesh.core.map.Geometry
import dev.fieldmesh.core.map.Ground
import dev.fieldmesh.core.map.Layer
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.MapException
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.PmTiles
import dev.fieldmesh.core.map.Spot
import dev.fieldmesh.core.map.TileAt
import dev.fieldmesh.core.map.TileType
import java.io.IOException
import java.util.EnumMap
import kotlin.math.hypot
import kotlin.math.pow
import kotlin.math.roundToInt

/**
 * A part of a map, with the names in it, those of places first. [isEmpty]: the map has nothing there. [fault]: why not
 * all of it could be painted; without a [picture], nothing could.
 */
internal class Painted(
    val look: Look,
    val picture: Bitmap? = null,
    val names: List<Pair<String, Spot>> = emptyList(),
    val isEmpty: Boolean = true,
    val fault: MapFault? = null,
)

/** Paints a map in a few quiet colours. Takes its time. */
internal class MapPainter(private val context: Context) {
    private val land = context.getColor(R.color.map_land)
    private val fills = mapOf(
        Ground.GREEN to context.fill(R.color.map_green),
        Ground.WATER to context.fill(R.color.map_water),
        Ground.BUILDING to context.fill(R.color.map_building),
    )
    private val thin = mapOf(
        Ground.STREAM to context.stroke(R.color.map_water, 2f),
        Ground.BORDER to context.stroke(R.color.map_line, 1.5f).dashed(8f, 4f),
        Ground.WAY to context.stroke(R.color.map_line, 1f).dashed(3f, 3f),
        Ground.RAIL to context.stroke(R.color.map_line, 2f),
    )
    private val edge = context.stroke(R.color.map_line, 1f)
    private val road = context.stroke(R.color.map_road, 1f)
    private val smooth = Paint(Paint.FILTER_BITMAP_FLAG)
    private val letters = context.mapLettering()

    private fun Paint.dashed(on: Float, off: Float) = apply {
        strokeCap = Paint.Cap.BUTT
        pathEffect = DashPathEffect(floatArrayOf(context.dp(on), context.dp(off)), 0f)
    }

    /**
     * Where the map has no tile of the zoom that suits, the coarser one is enlarged. Calls [goOn] often; what that
     * throws ends the painting.
     */
    @Synchronized
    fun paint(map: PmTiles, look: Look, goOn: () -> Unit): Painted {
        val picture = Bitmap.createBitmap(look.width, look.height, Bitmap.Config.ARGB_8888)
        val canvas = Canvas(picture)
        val places = mutableListOf<Pair<String, Spot>>()
        val roads = mutableListOf<Pair<String, Spot>>()
        var isEmpty = true
        val tilePx = context.dp(if (map.type == TileType.MVT) VECTOR_DP else PICTURE_DP).toDouble()
        val tiles = look.tiles(map.zooms, tilePx)
        var fault = if (tiles == null) MapFault.TOO_MUCH else null
        // So many names are kept: those near the middle first.
        for (at in tiles.orEmpty().sortedBy { frameOf(look, it).awayFrom(look) }) {
            goOn()
            val frame = Rect().also { frameOf(look, at).round(it) } // so that no seam is between two tiles
            canvas.save()
            canvas.clipRect(frame)
            try {
                val (from, text) = map.cover(at) ?: continue
                val within = frameOf(look, from)
                when (map.type) {
                    TileType.MVT -> Streets(canvas, look, frame, within, places, roads, goOn).draw(Layer.read(text))
                    else -> drawPicture(canvas, within, text)
                }
                isEmpty = false
            } catch (e: MapException) {
                fault = e.fault
            } catch (_: IOException) {
                fault = MapFault.UNREADABLE
            } finally {
                canvas.restore()
            }
        }
        return Painted(look, picture, places + roads, isEmpty || !look.meets(map.bounds), fault)
    }

    private fun RectF.awayFrom(look: Look) = hypot(centerX() - look.width / 2f, centerY() - look.height / 2f)

    private fun frameOf(look: Look, at: TileAt): RectF {
        val side = 2.0.pow(at.zoom)
        val first = Spot(at.x / side, at.y / side)
        val last = Spot((at.x + 1) / side, (at.y + 1) / side)
        return RectF(look.x(first), look.y(first), look.x(last), look.y(last))
    }

    private fun drawPicture(canvas: Canvas, within: RectF, text: ByteArray) {
        val size = BitmapFactory.Options().apply { inJustDecodeBounds = true }
        BitmapFactory.decodeByteArray(text, 0, text.size, size)
        val fits = size.outWidth in 1..PICTURE_MOST_PX && size.outHeight in 1..PICTURE_MOST_PX
        val picture = if (fits) BitmapFactory.decodeByteArray(text, 0, text.size) else null
        picture ?: throw MapException(MapFault.DAMAGED, "a tile is no picture that Android decodes")
        canvas.drawBitmap(picture, null, within, smooth)
        picture.recycle()
    }

    /** The parts of one vector tile that lie in [frame]; all of it would fill [within]. */
    private inner class Streets(
        private val canvas: Canvas,
        private val look: Look,
        private val frame: Rect,
        private val within: RectF,
        private val places: MutableList<Pair<String, Spot>>,
        private val roads: MutableList<Pair<String, Spot>>,
        private val goOn: () -> Unit,
    ) {
        private val paths = EnumMap<Ground, Path>(Ground::class.java)

        fun draw(layers: List<Layer>) {
            canvas.drawColor(land)
            for (layer in layers) {
                layer.features.forEachIndexed { i, feature ->
                    if (i % FEATURES_AT_ONCE == 0) goOn()
                    add(layer, feature)
                }
            }
            for ((ground, path) in paths) (fills[ground] ?: thin[ground])?.let { canvas.drawPath(path, it) }
            for ((ground, dp) in ROADS) {
                edge.strokeWidth = context.dp(2f) + wide(dp)
                paths[ground]?.let { canvas.drawPath(it, edge) }
            }
            for ((ground, dp) in ROADS) {
                road.strokeWidth = wide(dp)
                paths[ground]?.let { canvas.drawPath(it, road) }
            }
        }

        /** Roads are wider where the view is closer. */
        private fun wide(dp: Float) = context.dp(dp) * (1 / look.metresPerPx).toFloat().pow(0.4f).coerceIn(0.5f, 2.5f)

        private fun add(layer: Layer, feature: Layer.Feature) {
            val ground = Ground.of(layer.name, feature)
            val name = Ground.nameOf(layer.name, feature)
            if (ground == null && name == null) return
            val scale = within.width() / layer.extent
            val parts = feature.parts().map { part ->
                FloatArray(part.size) { part[it] * scale + if (it % 2 == 0) within.left else within.top }
            }
            if (ground != null) {
                val path = paths.getOrPut(ground, ::Path)
                for (part in parts.filter(::isSeen)) path.add(part, feature.type == Geometry.POLYGONS)
            }
            if (name != null) parts.maxByOrNull(::length)?.let { note(layer, name, it) }
        }

        private fun isSeen(part: FloatArray): Boolean {
            val box = RectF(part[0], part[1], part[0], part[1])
            for (i in 2 until part.size step 2) box.union(part[i], part[i + 1])
            val most = context.dp(SPREAD_DP)
            return box.left - most < frame.right &&
                box.right + most > frame.left &&
                box.top - most < frame.bottom &&
                box.bottom + most > frame.top
        }

        private fun Path.add(part: FloatArray, isRing: Boolean) {
            moveTo(part[0], part[1])
            for (i in 2 until part.size step 2) lineTo(part[i], part[i + 1])
            if (isRing) close()
        }

        private fun length(part: FloatArray) = (2 until part.size step 2).sumOf { i ->
            hypot(part[i] - part[i - 2], part[i + 1] - part[i - 1]).toDouble()
        }

        /** A road's name stands in its middle, if the road is as long as its name. */
        private fun note(layer: Layer, name: String, part: FloatArray) {
            val isPlace = Ground.isPlace(layer.name)
            if (!isPlace && length(part) < letters.measureText(name)) return
            val i = if (part.size == 4) -1 else part.size / 4 * 2
            val x = if (i < 0) (part[0] + part[2]) / 2 else part[i]
            val y = if (i < 0) (part[1] + part[3]) / 2 else part[i + 1]
            val into = if (isPlace) places else roads
            if (frame.contains(x.roundToInt(), y.roundToInt()) &&
                into.size < NAMES_MOST
            ) {
                into += name to look.spot(x, y)
            }
        }
    }

    private companion object {
        const val VECTOR_DP = 512f // for which Protomaps makes its tiles
        const val PICTURE_DP = 256f
        const val PICTURE_MOST_PX = 1024
        const val SPREAD_DP = 12f // the half of the widest line
        const val NAMES_MOST = 100
        const val FEATURES_AT_ONCE = 256
        val ROADS = mapOf(Ground.MINOR to 3f, Ground.MAJOR to 5f, Ground.HIGHWAY to 7f)
    }
}
