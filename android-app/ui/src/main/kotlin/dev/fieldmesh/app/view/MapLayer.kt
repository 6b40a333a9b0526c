package dev.fieldmesh.app.view

import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.RectF
import android.text.Html
import android.view.View
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.MapFault
import dev.fieldmesh.core.map.PmTiles
import dev.fieldmesh.core.map.Spot
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.MainScope
import kotlinx.coroutines.cancel
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext
import kotlinx.coroutines.withTimeoutOrNull
import kotlin.time.Duration.Companion.minutes

private fun attributionOf(map: PmTiles): String =
    Html.fromHtml(map.attribution.take(2000), Html.FROM_HTML_MODE_COMPACT).trim().replace(Regex("\\s+"), " ")
        .let { if (it.length > 200) it.take(199) + "…" else it }

/**
 * The map under a track. It is painted beside the main thread, wider than what is seen; until that is done, what was
 * painted before is moved and enlarged.
 */
internal class MapLayer(private val view: View) {
    private val painter = MapPainter(view.context)
    private val smooth = Paint(Paint.FILTER_BITMAP_FLAG)
    private var scope = MainScope()
    private var isPainting = false
    private var wanted: Look? = null

    /** For what would hold up the screens. */
    var worker: CoroutineDispatcher = Dispatchers.Default

    /** Called when there is something new of what follows. */
    var onPainted: () -> Unit = {}
    var painted: Painted? = null
        private set

    /** Why not all of what was painted last could be painted. */
    val fault get() = painted?.fault

    /** Of whom the map is, in one line and without markup; empty where its file does not say it. */
    var attribution = ""
        private set

    var map: PmTiles? = null
        set(value) {
            if (value === field) return
            field = value
            attribution = value?.let(::attributionOf).orEmpty()
            painted = null
            leave()
        }

    /** Has this painted, unless it is, or something else is being painted; it is looked at again after that. */
    fun want(look: Look?) {
        wanted = look
        val map = map ?: return
        if (look == null || painted?.look?.holds(look) == true) return
        if (isPainting) return
        isPainting = true
        scope.launch {
            val result = paint(map, look.wider(MARGIN))
            isPainting = false
            if (map === this@MapLayer.map) {
                painted = result
                view.invalidate()
                onPainted()
            }
            want(wanted)
        }
    }

    /** No map, not even one that was made to do harm, takes all the time or all the memory. */
    private suspend fun paint(map: PmTiles, look: Look): Painted = try {
        withTimeoutOrNull(PAINTING_MOST) { withContext(worker) { painter.paint(map, look) { ensureActive() } } }
    } catch (_: OutOfMemoryError) {
        null
    } ?: Painted(look, fault = MapFault.TOO_MUCH)

    fun draw(canvas: Canvas, look: Look) {
        val done = painted ?: return
        val picture = done.picture ?: return
        val first = done.look.spot(0f, 0f)
        val last = done.look.spot(done.look.width.toFloat(), done.look.height.toFloat())
        canvas.drawBitmap(picture, null, look.frame(first, last), smooth)
    }

    private fun Look.frame(first: Spot, last: Spot) = RectF(x(first), y(first), x(last), y(last))

    /** Ends what is being painted. */
    fun leave() {
        scope.cancel()
        scope = MainScope()
        isPainting = false
    }

    private companion object {
        const val MARGIN = 0.25
        val PAINTING_MOST = 1.minutes
    }
}
