package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.graphics.Paint
import android.graphics.Path
import android.graphics.Rect
import android.util.AttributeSet
import android.view.GestureDetector
import android.view.MotionEvent
import android.view.ScaleGestureDetector
import android.view.View
import android.view.ViewGroup
import dev.fieldmesh.app.R
import dev.fieldmesh.app.screen.bitRate
import dev.fieldmesh.core.app.Box
import dev.fieldmesh.core.app.Labels
import dev.fieldmesh.core.app.Peer
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.app.TrackState
import dev.fieldmesh.core.map.Look
import dev.fieldmesh.core.map.ScaleBar
import dev.fieldmesh.core.map.Spot

/**
 * The way, north up, on a map that the phone has, or else on a plain grid: each stretch in the colour of the throughput
 * there, the roadside's site as a square, other nodes as diamonds with the age of what is known, marks as rings, the
 * car as a dot, which is hollow where its last place is old. Words that would cover others are left out: the nodes'
 * stay first, then the newest marks', then those of the map.
 */
class TrackView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val ground = context.fill(R.color.surface)
    private val grid = context.stroke(R.color.line, 0.5f)
    private val verge = context.stroke(R.color.ground, 9f)
    private val unmeasured = context.stroke(R.color.line, 4f)
    private val measured = context.stroke(R.color.accent, 6f)
    private val car = context.fill(R.color.text)
    private val carWas = context.stroke(R.color.text, 3f)
    private val rim = context.stroke(R.color.ground, 3f)
    private val site = context.fill(R.color.good)
    private val node = context.fill(R.color.accent)
    private val nodeRim = context.stroke(R.color.accent, 3f)
    private val mark = context.stroke(R.color.bad, 3f)
    private val words = context.lettering(R.color.text, 14f)
    private val names = context.mapLettering()
    private val halos = listOf(words, names).associateWith(context::halo)
    private val ramp = context.fill(R.color.text)
    private val rule = context.stroke(R.color.text, 2f)
    private val path = Path()
    private var track = TrackState()
    private var unit = SpeedUnit.KMH
    private var way = emptyList<Spot>()

    /** Of the stretch to each place of the way; null where nothing was measured. */
    private var colors = emptyList<Int?>()

    /** What a person has moved to; null: all of the track. */
    var chosen: Look? = null
        set(value) {
            field = value
            onChosen(value)
            changed()
        }

    /** Called with [chosen], whenever it changes. */
    var onChosen: (Look?) -> Unit = {}

    /** What lies below the track. */
    internal val layer = MapLayer(this)

    /** Whether fingers move it. */
    var isMovable = false
    private val fingers = GestureDetector(context, Fingers())
    private val pinch = ScaleGestureDetector(context, Pinch())

    init {
        contentDescription = spoken()
    }

    fun show(track: TrackState, unit: SpeedUnit) {
        if (track == this.track && unit == this.unit) return
        this.track = track
        this.unit = unit
        way = track.points.map { Spot.of(it.latDeg, it.lonDeg) }
        val most = (mostBps ?: 0.0).coerceAtLeast(1.0)
        colors = track.points.map { at ->
            at.throughputBps.takeUnless { at.afterGap }?.let { context.ramp((it / most).toFloat()) }
        }
        changed()
    }

    /** What is seen, or what lies below it, is another. */
    internal fun changed() {
        contentDescription = spoken()
        layer.want(look())
        invalidate()
    }

    /** Closer by [factor], about what is at ([x], [y]). */
    fun zoom(factor: Double, x: Float = width / 2f, y: Float = height / 2f) {
        chosen = look()?.zoomed(factor, x, y) ?: return
    }

    fun showWhole() {
        chosen = null
    }

    override fun onSizeChanged(width: Int, height: Int, formerWidth: Int, formerHeight: Int) = changed()

    override fun onDetachedFromWindow() {
        layer.leave()
        super.onDetachedFromWindow()
    }

    override fun onTouchEvent(event: MotionEvent): Boolean {
        if (!isMovable) return super.onTouchEvent(event)
        pinch.onTouchEvent(event)
        fingers.onTouchEvent(event)
        return true
    }

    private inner class Fingers : GestureDetector.SimpleOnGestureListener() {
        override fun onDown(e: MotionEvent) = true

        override fun onScroll(from: MotionEvent?, to: MotionEvent, distanceX: Float, distanceY: Float): Boolean {
            chosen = look()?.moved(-distanceX, -distanceY) ?: return false
            return true
        }

        override fun onDoubleTap(e: MotionEvent): Boolean {
            zoom(STEP, e.x, e.y)
            return true
        }
    }

    private inner class Pinch : ScaleGestureDetector.SimpleOnScaleGestureListener() {
        override fun onScale(detector: ScaleGestureDetector): Boolean {
            zoom(detector.scaleFactor.toDouble(), detector.focusX, detector.focusY)
            return true
        }
    }

    /** What a screen reader says of it. */
    private fun spoken(): String {
        val most = mostBps
        val what = when {
            track.isEmpty -> context.getString(R.string.track_none)
            most == null -> context.getString(R.string.track_way)
            else -> context.getString(R.string.track_way_measured, context.bitRate(most))
        }
        return listOfNotNull(
            what,
            layer.attribution.ifEmpty { null }?.let { context.getString(R.string.track_map, it) },
            look()?.let { context.getString(R.string.track_scale, bar(it)) },
        ).plus(track.peers.map { context.getString(R.string.track_peer, it.node, it.ageS) }).joinToString("; ")
    }

    internal fun look(): Look? = if (width == 0 ||
        height == 0
    ) {
        null
    } else {
        chosen?.copy(width = width, height = height) ?: whole()
    }

    /** All of the track, or of the map. */
    private fun whole(): Look? {
        val all = way + track.peers.map { Spot.of(it.latDeg, it.lonDeg) } + listOfNotNull(sitePlace())
        val places = all.ifEmpty {
            val (west, south, east, north) = layer.map?.bounds ?: return null
            listOf(Spot.of(north, west), Spot.of(south, east))
        }
        // The buttons that move it stand at its right.
        val taken = if (isMovable) context.dp(BUTTONS_DP).toInt() else 0
        val edge = EDGE * minOf(width, height) + words.textSize
        return Look.at(places, width - taken, height, edge, LEAST_M).copy(width = width).moved(-taken / 2f, 0f)
    }

    private fun bar(look: Look): ScaleBar = look.bar(context.dp(BAR_DP).toDouble(), unit == SpeedUnit.MPH)

    override fun onDraw(canvas: Canvas) {
        canvas.drawRect(0f, 0f, width.toFloat(), height.toFloat(), ground)
        val look = look() ?: return canvas.drawText(
            context.getString(R.string.track_none),
            context.dp(12f),
            context.dp(28f),
            words,
        )
        if (layer.painted?.isEmpty != false) drawGrid(canvas, look)
        layer.draw(canvas, look)
        Drawing(canvas, look).draw()
    }

    /** Lines as far apart as the scale is long, about the first place. */
    private fun drawGrid(canvas: Canvas, look: Look) {
        val step = bar(look).px.toFloat()
        val from = sitePlace() ?: way.firstOrNull() ?: look.middle
        generateSequence(look.x(from).mod(step)) { it + step }.takeWhile { it < width }
            .forEach { canvas.drawLine(it, 0f, it, height.toFloat(), grid) }
        generateSequence(look.y(from).mod(step)) { it + step }.takeWhile { it < height }
            .forEach { canvas.drawLine(0f, it, width.toFloat(), it, grid) }
    }

    private fun sitePlace(): Spot? {
        return Spot.of(track.siteLatDeg ?: return null, track.siteLonDeg ?: return null)
    }

    private val mostBps get() = track.points.mapNotNull { it.throughputBps }.maxOrNull()

    /** One drawing of the track and of all words. */
    private inner class Drawing(private val canvas: Canvas, private val look: Look) {
        private val room = Labels(width.toFloat(), height.toFloat())
        private val edge = context.dp(10f)

        fun draw() {
            val marks = track.marks.asReversed().mapNotNull { m ->
                m.latDeg?.let { lat -> m.lonDeg?.let { lon -> m.text to Spot.of(lat, lon) } }
            }
            val peers = track.peers.map { it to Spot.of(it.latDeg, it.lonDeg) }
            drawWay()
            sitePlace()?.let(::drawSite)
            marks.forEach { (_, at) -> canvas.drawCircle(look.x(at), look.y(at), context.dp(7f), mark) }
            peers.forEach { (peer, at) -> drawPeer(peer, at) }
            way.lastOrNull()?.let(::drawCar)
            keepControlsFree()
            drawScale()
            drawLegend()
            val told = peers.map { (p, at) -> context.getString(R.string.track_peer, p.node, p.ageS) to at } + marks
            (
                told.map {
                    it.second
                } + listOfNotNull(sitePlace(), way.lastOrNull())
                ).forEach { room.keepFree(box(it, 11f)) }
            told.forEach { (text, at) -> drawBeside(text, box(at, 11f), words) }
            keepWayFree()
            val drawn = HashSet<String>()
            layer.painted?.names.orEmpty().filter { isSeen(it.second) }.forEach { (text, at) ->
                if (text !in drawn && drawBeside(text, box(at, 0f), names)) drawn += text
            }
        }

        /** False where no room is. */
        private fun drawBeside(text: String, symbol: Box, paint: Paint): Boolean {
            val letters = paint.fontMetrics
            val box = room.place(symbol, paint.measureText(text), letters.descent - letters.ascent) ?: return false
            drawWords(text, box.left, box.top - letters.ascent, paint)
            return true
        }

        private fun isSeen(at: Spot) = look.x(at) in 0f..width.toFloat() && look.y(at) in 0f..height.toFloat()

        private fun drawWords(text: String, x: Float, y: Float, paint: Paint) {
            if (layer.painted != null) canvas.drawText(text, x, y, halos.getValue(paint))
            canvas.drawText(text, x, y, paint)
        }

        private fun box(at: Spot, halfDp: Float): Box {
            val half = context.dp(halfDp)
            return Box(look.x(at) - half, look.y(at) - half, look.x(at) + half, look.y(at) + half)
        }

        /** Other views in the same frame lie above this one. */
        private fun keepControlsFree() {
            val frame = parent as? ViewGroup ?: return
            for (i in frame.indexOfChild(this@TrackView) + 1 until frame.childCount) {
                val at = Rect().also(frame.getChildAt(i)::getHitRect).apply {
                    offset(-this@TrackView.left, -this@TrackView.top)
                }
                room.keepFree(Box(at.left.toFloat(), at.top.toFloat(), at.right.toFloat(), at.bottom.toFloat()))
            }
        }

        /** The names of the map stand beside the way, not on it. */
        private fun keepWayFree() {
            if (layer.painted == null) return
            val cell = context.dp(8f)
            val cells = way.filter(::isSeen)
                .mapTo(HashSet()) { (look.x(it) / cell).toInt() to (look.y(it) / cell).toInt() }
            for ((x, y) in cells) {
                room.keepFree(Box(x * cell, y * cell, (x + 1) * cell, (y + 1) * cell))
            }
        }

        private fun drawWay() {
            if (way.size < 2) return
            path.reset()
            path.moveTo(look.x(way[0]), look.y(way[0]))
            way.drop(1).forEach { path.lineTo(look.x(it), look.y(it)) }
            if (layer.painted != null) canvas.drawPath(path, verge)
            for (i in 1 until way.size) {
                val paint = colors[i]?.let { measured.apply { color = it } } ?: unmeasured
                canvas.drawLine(look.x(way[i - 1]), look.y(way[i - 1]), look.x(way[i]), look.y(way[i]), paint)
            }
        }

        /** How long a round length is, at the bottom. */
        private fun drawScale() {
            val bar = bar(look)
            val y = height - edge
            val tick = context.dp(5f)
            val right = edge + bar.px.toFloat()
            path.reset()
            path.moveTo(edge, y - tick)
            path.lineTo(edge, y)
            path.lineTo(right, y)
            path.lineTo(right, y - tick)
            if (layer.painted != null) canvas.drawPath(path, rim.apply { strokeWidth = context.dp(5f) })
            canvas.drawPath(path, rule)
            val base = y - tick * 1.5f
            val top = base - words.textSize
            drawWords("$bar", edge + tick, base, words)
            room.keepFree(Box(0f, top, maxOf(right, edge + tick + words.measureText("$bar")), height.toFloat()))
        }

        /** What the colours of the way stand for, at the top. */
        private fun drawLegend() {
            val most = mostBps ?: return
            val base = edge + words.textSize * 0.8f
            val none = context.bitRate(0.0)
            val all = context.bitRate(most)
            val first = edge * 1.5f + words.measureText(none)
            val wide = context.dp(72f)
            drawWords(none, edge, base, words)
            for (i in 0 until STEPS_OF_RAMP) {
                ramp.color = context.ramp(i / (STEPS_OF_RAMP - 1f))
                val x = first + wide * i / STEPS_OF_RAMP
                canvas.drawRect(x, base - words.textSize * 0.7f, x + wide / STEPS_OF_RAMP + 1, base, ramp)
            }
            drawWords(all, first + wide + edge / 2, base, words)
            val right = first + wide + edge / 2 + words.measureText(all)
            room.keepFree(Box(0f, 0f, right, base + words.fontMetrics.descent))
        }

        private fun drawSite(at: Spot) {
            val (left, top, right, bottom) = box(at, 8f)
            canvas.drawRect(left, top, right, bottom, site)
        }

        private fun drawPeer(peer: Peer, at: Spot) {
            val (left, top, right, bottom) = box(at, 10f)
            path.reset()
            path.moveTo(look.x(at), top)
            path.lineTo(right, look.y(at))
            path.lineTo(look.x(at), bottom)
            path.lineTo(left, look.y(at))
            path.close()
            if (peer.ageS <= FRESH_S) canvas.drawPath(path, node)
            canvas.drawPath(path, nodeRim)
        }

        private fun drawCar(at: Spot) {
            if (track.isOld) return canvas.drawCircle(look.x(at), look.y(at), context.dp(8f), carWas)
            canvas.drawCircle(look.x(at), look.y(at), context.dp(9f), car)
            canvas.drawCircle(look.x(at), look.y(at), context.dp(9f), rim.apply { strokeWidth = context.dp(3f) })
        }
    }

    companion object {
        /** How much closer one tap comes. */
        internal const val STEP = 2.0
        private const val EDGE = 0.1
        private const val LEAST_M = 100.0
        private const val BAR_DP = 96f
        private const val BUTTONS_DP = 48f
        private const val STEPS_OF_RAMP = 24

        /**
         * Above it a diamond is drawn hollow: the node tells its place every ten seconds, so two tellings
         * have been missed.
         */
        private const val FRESH_S = 30L
    }
}
