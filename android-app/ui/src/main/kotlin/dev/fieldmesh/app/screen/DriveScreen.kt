package dev.fieldmesh.app.screen

import android.content.res.ColorStateList
import android.view.View
import android.widget.TextView
import dev.fieldmesh.app.R
import dev.fieldmesh.app.view.ChartView
import dev.fieldmesh.app.view.SpeedBandView
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.drive.SignalSource
import dev.fieldmesh.core.drive.SpeedSource
import dev.fieldmesh.device.VoiceState
import kotlin.math.roundToInt

/** What the Drive screen is told by the person and the phone. */
interface DriveSetting {
    val unit: SpeedUnit

    /** What the voice has; it is of no matter when nobody wants it to speak. */
    val voice: VoiceState
}

/** The present trial as one glance. */
class DriveScreen(override val view: View, private val setting: DriveSetting, onAbort: (TextView) -> Unit) : Screen {
    private val context = view.context
    private val word = text(R.id.word)
    private val speed = text(R.id.speed)
    private val abort = text(R.id.abort)
    private val unknown = context.getString(R.string.unknown)

    init {
        word.setBackgroundResource(R.drawable.card)
        abort.setOnClickListener { onAbort(abort) }
    }

    private fun text(id: Int): TextView = view.findViewById(id)

    override fun show(state: AppState) {
        val d = state.drive
        text(R.id.trial).text = trialText(d)
        val w = d.word()
        word.setText(w.text)
        word.backgroundTintList = ColorStateList.valueOf(context.getColor(w.color))
        val speeds = Speeds(context, setting.unit)
        speed.text = d.speedMps?.let(speeds::rough) ?: unknown
        text(R.id.unit).text = speeds.symbol
        speed.contentDescription = context.getString(R.string.speed_spoken, speed.text, word.text)
        view.findViewById<SpeedBandView>(R.id.band).show(d.band, d.speedMps)
        text(R.id.target).text =
            d.band?.let {
                context.getString(
                    R.string.target,
                    speeds.fine(it.targetMps),
                    speeds.fine(it.halfWidthMps),
                    speeds.symbol,
                )
            } ?: context.getString(R.string.no_target)
        text(R.id.source).text = when (d.speedSource) {
            SpeedSource.NODE -> context.getString(R.string.speed_of_node)
            SpeedSource.PHONE -> context.getString(R.string.speed_of_phone)
            null -> ""
        }
        figures(d)
        charts(d)
        told(R.id.detail, detail(d, speeds))
        told(R.id.voice, context.voiceText(setting.voice))
        abort.visibility = if (d.phase == Phase.ARMED || d.phase == Phase.RUNNING) View.VISIBLE else View.GONE
    }

    /** A text that takes no room when there is nothing to tell. */
    private fun told(id: Int, what: String?) = text(id).run {
        text = what.orEmpty()
        visibility = if (what.isNullOrEmpty()) View.GONE else View.VISIBLE
    }

    /** What to do next, what the node waits for, or what the last attempt came to. */
    private fun detail(d: DriveState, speeds: Speeds): String? {
        val over = d.verdict
        return when {
            d.staleSinceNs != null || d.phase == Phase.NO_RUN -> context.nextStep(d.link)
            d.isStopped && !d.phase.isUnderWay -> context.getString(R.string.campaign_stopped)
            !d.detail.isNullOrEmpty() -> speeds.inWords(d.detail.orEmpty()).unbroken()
            over?.reason != null -> speeds.reason(over)
            over?.isFinal == false && over.outcome == "accepted" -> context.getString(R.string.done_alone)
            else -> over?.throughputBps?.let { context.getString(R.string.result, context.bitRate(it)) }
        }
    }

    private fun trialText(d: DriveState): String {
        val key = d.key ?: return context.getString(R.string.no_trial)
        val total = d.trialsTotal ?: return context.getString(R.string.trial_only, key.trial, key.attempt)
        return context.getString(R.string.trial_of, key.trial, total, key.attempt)
    }

    private fun figures(d: DriveState) {
        text(R.id.to_gate).text =
            d.toGateM?.takeIf { d.phase == Phase.ARMED }?.let { context.getString(R.string.metres, it.roundToInt()) }
                ?: unknown
        text(R.id.in_band).text = inBand(d)
        text(R.id.remaining).text = (d.remainingS ?: d.durationS?.takeIf { d.phase == Phase.ARMED })
            ?.let { context.getString(R.string.seconds, it) } ?: unknown
        text(R.id.heading).text = heading(d)
    }

    private fun inBand(d: DriveState): String {
        val held = d.inBandS ?: return unknown
        val asked =
            d.holdS?.takeIf { d.phase == Phase.ARMED && it > 0 } ?: return context.getString(R.string.seconds, held)
        return context.getString(R.string.of_seconds, held, asked)
    }

    private fun heading(d: DriveState): String {
        val own = d.trackDeg?.roundToInt() ?: return unknown
        val wanted = d.wantedTrackDeg?.roundToInt() ?: return context.getString(R.string.degrees, own)
        return context.getString(R.string.degrees_wanted, own, wanted)
    }

    private fun charts(d: DriveState) {
        val nothing = context.getString(R.string.no_values)
        val mbit = d.throughput.map { it.copy(value = it.value / 1e6) }
        view.findViewById<ChartView>(R.id.throughput).show(
            context.getString(R.string.chart_last, context.getString(R.string.throughput)),
            d.throughput.lastOrNull()?.let { context.bitRate(it.value) } ?: nothing,
            mbit,
            0.0..1.0,
        ) { context.bitRate(it * 1e6) }
        val signal = when {
            d.signalSource == SignalSource.ACCESS_POINT -> context.getString(R.string.signal_wifi)
            d.signalPeers > 1 -> context.getString(R.string.signal_strongest, d.signalPeers)
            else -> context.getString(R.string.signal)
        }
        view.findViewById<ChartView>(R.id.signal).show(
            context.getString(R.string.chart_last, signal),
            d.signal.lastOrNull()?.let { context.getString(R.string.dbm, it.value) } ?: nothing,
            d.signal,
            WEAK_DBM..STRONG_DBM,
        ) { context.getString(R.string.dbm, it) }
    }

    private companion object {
        const val WEAK_DBM = -90.0
        const val STRONG_DBM = -40.0
    }
}
