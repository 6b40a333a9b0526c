package dev.fieldmesh.app.screen

import android.view.View
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.app.view.Bar
import dev.fieldmesh.app.view.DistanceView
import dev.fieldmesh.app.view.TrackView
import dev.fieldmesh.core.app.TrackPoint
import dev.fieldmesh.core.app.TrackState
import dev.fieldmesh.core.wire.Places
import dev.fieldmesh.core.wire.Stretch

/** What a run logged by place: charts and a table by distance, and the way. */
internal class PlacesCard(private val view: View) {
    private val context = view.context
    private val stretches = Cards<Pair<String, String>>(view.findViewById(R.id.stretches), R.layout.node_row)

    fun show(places: Places?, words: Speeds) {
        val isThere = places != null && places.way.isNotEmpty()
        view.see(R.id.places_title, isThere)
        view.see(R.id.way, isThere)
        view.tell(R.id.farthest, places?.takeIf { isThere }?.let(::farthestText))
        val all = places?.stretches.orEmpty()
        for (id in CHARTS) view.see(id, all.isNotEmpty())
        stretches.fill(all.map { titleOf(it) to numbersOf(it, words) }) { row, (title, numbers) ->
            row.findViewById<TextView>(R.id.label).text = title
            row.findViewById<TextView>(R.id.value).text = numbers
        }
        if (places == null || !isThere) return
        showCharts(all, words)
        view.findViewById<TrackView>(R.id.way).show(
            TrackState(
                points = places.way.map { TrackPoint(it.latDeg, it.lonDeg, it.throughputBps, it.afterGap == true) },
                siteLatDeg = places.roadsideLatDeg,
                siteLonDeg = places.roadsideLonDeg,
            ),
            words.unit,
        )
    }

    private fun farthestText(places: Places): String = when {
        places.stretches.isEmpty() -> context.getString(R.string.exp_no_distance)
        places.farthestM == null -> context.getString(R.string.exp_nothing_came)
        else -> context.getString(R.string.exp_farthest, places.farthestM).unbroken()
    }

    private fun titleOf(s: Stretch) = context.getString(R.string.exp_stretch, s.fromM, s.toM, s.seconds)

    private fun numbersOf(s: Stretch, words: Speeds): String = listOf(
        s.throughputBps?.let(context::bitRate) ?: context.getString(R.string.exp_no_throughput),
        s.lostPercent?.let { context.getString(R.string.exp_stretch_lost, it) }
            ?: context.getString(R.string.exp_no_loss),
        s.signalDbm?.let { context.getString(R.string.dbm, it) }
            ?: s.wifiSignalDbm?.let { context.getString(R.string.exp_wifi_signal, it) }
            ?: context.getString(R.string.exp_no_signal),
        s.speedMps?.let { context.getString(R.string.exp_stretch_speed, words.fine(it), words.symbol) }
            ?: context.getString(R.string.exp_no_speed),
    ).joinToString(", ").unbroken()

    private fun showCharts(all: List<Stretch>, words: Speeds) {
        fun chart(id: Int, label: String, least: ClosedFloatingPointRange<Double>, number: (Stretch) -> Double?) =
            view.findViewById<DistanceView>(id)
                .show(label, all.map { Bar(it.fromM, it.toM, number(it)) }, least) { "%.1f".format(it) }
        chart(R.id.throughput_chart, context.getString(R.string.exp_chart_throughput), 0.0..1.0) { s ->
            s.throughputBps?.let { it / BITS_OF_MBIT }
        }
        chart(R.id.loss_chart, context.getString(R.string.exp_chart_loss), 0.0..100.0) { it.lostPercent }
        val isAndroids = all.all { it.signalDbm == null } && all.any { it.wifiSignalDbm != null }
        val signal = context.getString(if (isAndroids) R.string.signal_wifi else R.string.signal)
        chart(R.id.signal_chart, context.getString(R.string.exp_chart_signal, signal), -90.0..-50.0) { s ->
            if (isAndroids) s.wifiSignalDbm else s.signalDbm
        }
        chart(R.id.speed_chart, context.getString(R.string.exp_chart_speed, words.symbol), 0.0..1.0) { s ->
            s.speedMps?.let(words.unit::of)
        }
    }

    private companion object {
        const val BITS_OF_MBIT = 1e6
        val CHARTS = listOf(R.id.throughput_chart, R.id.loss_chart, R.id.signal_chart, R.id.speed_chart)
    }
}
