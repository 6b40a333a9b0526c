package dev.fieldmesh.app.view

import android.content.Context
import android.graphics.Canvas
import android.graphics.Path
import android.util.AttributeSet
import android.view.View
import dev.fieldmesh.app.R
import dev.fieldmesh.app.screen.bitRate
import dev.fieldmesh.core.app.Box
import dev.fieldmesh.core.app.Labels
import dev.fieldmesh.core.app.Mark
import dev.fieldmesh.core.app.Peer
import dev.fieldmesh.core.app.TrackState
import dev.fieldmesh.core.drive.Metres

/**
 * The way on a plain grid, north up, without a map from anywhere: each stretch
 * in the colour of the throughput there, the roadside's site as a square, other
 * nodes as diamonds with the age of what is known, marks as rings, the car as a dot.
 * Words that would cover others are left out: the nodes' stay first, then the newest marks'.
 */
class TrackView(context: Context, attributes: AttributeSet?) : View(context, attributes) {
    private val ground = context.fill(R.color.surface)
    private val grid = context.stroke(R.color.line, 0.5f)
    private val unmeasured = context.stroke(R.color.line, 4f)
    private val measured = context.stroke(R.color.accent, 6f)
    private val car = context.fill(R.color.text)
    private val rim = context.stroke(R.color.ground, 3f)
    private val site = context.fill(R.color.good)
    private val node = context.fill(R.color.accent)
    private val nodeRim = context.stroke(R.color.accent, 3f)
    private val diamond = Path()
    private val mark = context.stroke(R.color.bad, 3f)
    private val words = context.lettering(R.color.text, 14f)
    private val scaleBar = context.fill(R.color.text)
    private var track = TrackState()
    private var scale = Scale(Metres(0.0, 0.0), 1.0)

    init {
        contentDescription = spoken()
    }

    fun show(track: TrackState) {
        if (track == this.track) return
        this.track = track
        contentDescription = spoken()
        invalidate()
    }

    /** What a screen reader says of it. */
    private fun spoken(): String {
        val most = mostBps
        val way = when {
            track.isEmpty -> context.getString(R.string.track_none)
            most == null -> context.getString(R.string.track_way)
            else -> context.getString(R.string.track_way_measured, context.bitRate(most))
        }
        return (listOf(way) + track.peers.map { context.getString(R.string.track_peer, it.node, it.ageS) })
            .joinToString("; ")
    }

    override fun onDraw(canvas: Canvas) {
        canvas.drawRect(0f, 0f, width.toFloat(), height.toFloat(), ground)
        val places = track.points.mapNotNull { track.metres(it.latDeg, it.lonDeg) }
        val others = track.peers.mapNotNull { peer -> track.metres(peer.latDeg, peer.lonDeg)?.let { peer to it } }
        if (places.isEmpty() && others.isEmpty() && track.siteLatDeg == null) {
            canvas.drawText(context.getString(R.string.track_none), context.dp(12f), context.dp(28f), words)
            return
        }
        scale = fit(places + others.map { it.second } + listOfNotNull(sitePlace()))
        val step = drawGrid(canvas)
        drawWay(canvas, places)
        drawSite(canvas)
        val marks = track.marks.asReversed().mapNotNull { m -> placeOf(m)?.let { m.text to it } }
        marks.forEach { (_, place) -> canvas.drawCircle(x(place), y(place), context.dp(7f), mark) }
        others.forEach { (peer, place) -> drawPeer(canvas, peer, place) }
        places.lastOrNull()?.let { drawDot(canvas, it) }
        val caption = context.getString(R.string.track_grid, step)
        canvas.drawText(caption, context.dp(10f), height - context.dp(10f), words)
        val room = Labels(width.toFloat(), height.toFloat())
        room.keepFree(
            Box(
                0f,
                height - context.dp(10f) - words.textSize,
                context.dp(10f) + words.measureText(caption),
                height.toFloat(),
            ),
        )
        drawLegend(canvas, room)
        val nodes = others.map { (peer, place) ->
            context.getString(R.string.track_peer, peer.node, peer.ageS) to place
        }
        drawWords(canvas, room, nodes + marks, listOfNotNull(sitePlace(), places.lastOrNull()))
    }

    /** What stands at its places, the first first, where there is room; nothing covers a symbol. */
    private fun drawWords(canvas: Canvas, room: Labels, texts: List<Pair<String, Metres>>, bare: List<Metres>) {
        (texts.map { it.second } + bare).forEach { room.keepFree(symbol(it)) }
        val letters = words.fontMetrics
        for ((text, place) in texts) {
            val box = room.place(symbol(place), words.measureText(text), letters.descent - letters.ascent) ?: continue
            canvas.drawText(text, box.left, box.top - letters.ascent, words)
        }
    }

    private fun symbol(place: Metres): Box {
        val half = context.dp(11f) // the largest is a diamond of 10 with its rim
        return Box(x(place) - half, y(place) - half, x(place) + half, y(place) + half)
    }

    private fun sitePlace(): Metres? {
        val lat = track.siteLatDeg ?: return null
        return track.metres(lat, track.siteLonDeg ?: return null)
    }

    /** The height of the words at the top and at the bottom. */
    private val margin get() = context.dp(14f) + words.textSize

    /** All places within the view, with a margin; never closer than 100 m across. */
    private fun fit(places: List<Metres>): Scale {
        val west = places.minOf { it.east }
        val east = places.maxOf { it.east }
        val south = places.minOf { it.north }
        val north = places.maxOf { it.north }
        val metres = maxOf(
            (east - west) / (width * ROOM),
            (north - south) / ((height - 2 * margin) * ROOM),
            LEAST_M / minOf(width, height),
        )
        return Scale(Metres((west + east) / 2, (south + north) / 2), metres)
    }

    private fun x(m: Metres) = (width / 2 + (m.east - scale.middle.east) / scale.metresPerPixel).toFloat()

    private fun y(m: Metres) = (height / 2 - (m.north - scale.middle.north) / scale.metresPerPixel).toFloat()

    private fun drawGrid(canvas: Canvas): Int {
        val wanted = scale.metresPerPixel * context.dp(64f)
        val step = STEPS.firstOrNull { it >= wanted } ?: STEPS.last()
        val pixels = (step / scale.metresPerPixel).toFloat()
        var gx = x(Metres(Math.floor((scale.middle.east - width / 2 * scale.metresPerPixel) / step) * step, 0.0))
        while (gx < width) {
            canvas.drawLine(gx, 0f, gx, height.toFloat(), grid)
            gx += pixels
        }
        var gy = y(Metres(0.0, Math.ceil((scale.middle.north + height / 2 * scale.metresPerPixel) / step) * step))
        while (gy < height) {
            canvas.drawLine(0f, gy, width.toFloat(), gy, grid)
            gy += pixels
        }
        return step
    }

    private fun drawWay(canvas: Canvas, places: List<Metres>) {
        val most = mostBps ?: 0.0
        for (i in 1 until places.size) {
            val bps = track.points[i].run { throughputBps.takeUnless { afterGap } }
            canvas.drawLine(
                x(places[i - 1]),
                y(places[i - 1]),
                x(places[i]),
                y(places[i]),
                if (bps ==
                    null
                ) {
                    unmeasured
                } else {
                    measured.apply { color = context.ramp((bps / most.coerceAtLeast(1.0)).toFloat()) }
                },
            )
        }
    }

    private val mostBps get() = track.points.mapNotNull { it.throughputBps }.maxOrNull()

    /** What the colours of the way stand for, at the top. */
    private fun drawLegend(canvas: Canvas, room: Labels) {
        val most = mostBps ?: return
        val edge = context.dp(10f)
        val base = edge + words.textSize * 0.8f
        val none = context.bitRate(0.0)
        val all = context.bitRate(most)
        val left = edge * 1.5f + words.measureText(none)
        val wide = context.dp(72f)
        canvas.drawText(none, edge, base, words)
        for (i in 0 until STEPS_OF_RAMP) {
            scaleBar.color = context.ramp(i / (STEPS_OF_RAMP - 1f))
            val x = left + wide * i / STEPS_OF_RAMP
            canvas.drawRect(x, base - words.textSize * 0.7f, x + wide / STEPS_OF_RAMP + 1, base, scaleBar)
        }
        canvas.drawText(all, left + wide + edge / 2, base, words)
        val right = left + wide + edge / 2 + words.measureText(all)
        room.keepFree(Box(0f, 0f, right, base + words.fontMetrics.descent))
    }

    private fun drawSite(canvas: Canvas) {
        val place = sitePlace() ?: return
        val half = context.dp(8f)
        canvas.drawRect(x(place) - half, y(place) - half, x(place) + half, y(place) + half, site)
    }

    private fun drawPeer(canvas: Canvas, peer: Peer, place: Metres) {
        val half = context.dp(10f)
        diamond.reset()
        diamond.moveTo(x(place), y(place) - half)
        diamond.lineTo(x(place) + half, y(place))
        diamond.lineTo(x(place), y(place) + half)
        diamond.lineTo(x(place) - half, y(place))
        diamond.close()
        if (peer.ageS <= FRESH_S) canvas.drawPath(diamond, node)
        canvas.drawPath(diamond, nodeRim)
    }

    private fun placeOf(m: Mark): Metres? {
        return track.metres(m.latDeg ?: return null, m.lonDeg ?: return null)
    }

    private fun drawDot(canvas: Canvas, place: Metres) {
        canvas.drawCircle(x(place), y(place), context.dp(9f), car)
        canvas.drawCircle(x(place), y(place), context.dp(9f), rim)
    }

    private class Scale(val middle: Metres, val metresPerPixel: Double)

    private companion object {
        const val ROOM = 0.8
        const val LEAST_M = 100.0
        const val STEPS_OF_RAMP = 24

        /**
         * Above it a diamond is drawn hollow: the node tells its place every ten seconds, so two tellings
         * have been missed.
         */
        const val FRESH_S = 30L
        val STEPS = listOf(10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
    }
}
