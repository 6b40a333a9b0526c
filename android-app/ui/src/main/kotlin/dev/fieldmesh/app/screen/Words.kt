package dev.fieldmesh.app.screen

import android.content.Context
import dev.fieldmesh.app.R
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import java.util.Locale

/** What stands in the great field of the Drive screen, and the colour of its ground. */
internal class Word(val text: Int, val color: Int)

internal fun DriveState.word(): Word = when {
    staleSinceNs != null &&
        phase in setOf(
            Phase.ARMED,
            Phase.RUNNING,
            Phase.RESTORING,
        ) -> Word(R.string.word_stale, R.color.bad)
    phase == Phase.NO_RUN -> Word(R.string.word_no_run, R.color.text_soft)
    phase == Phase.IDLE -> Word(R.string.word_idle, R.color.text_soft)
    phase == Phase.RESTORING -> Word(R.string.word_restoring, R.color.text_soft)
    phase == Phase.DONE -> outcomeWord()
    band != null && zone == Zone.UNKNOWN -> Word(R.string.word_no_fix, R.color.bad)
    zone == Zone.BELOW -> Word(R.string.word_faster, R.color.warn)
    zone == Zone.ABOVE -> Word(R.string.word_slower, R.color.bad)
    phase == Phase.RUNNING -> Word(R.string.word_go, R.color.good)
    zone == Zone.WITHIN -> Word(R.string.word_hold, R.color.accent)
    else -> Word(R.string.word_armed, R.color.accent)
}

private fun DriveState.outcomeWord() = when (verdict?.outcome) {
    "rejected" -> Word(R.string.word_rejected, R.color.warn)
    "failed" -> Word(R.string.word_failed, R.color.bad)
    "interrupted" -> Word(R.string.word_interrupted, R.color.warn)
    else -> Word(R.string.word_done, R.color.good)
}

internal fun Context.linkText(state: AppState): String = when (state.drive.link) {
    LinkState.UNPAIRED -> getString(R.string.link_unpaired)
    LinkState.CONNECTING -> getString(R.string.link_connecting)
    LinkState.UP -> getString(R.string.link_up, state.node?.node.orEmpty())
    LinkState.LOST -> getString(R.string.link_lost)
    LinkState.WRONG_NODE -> getString(R.string.link_wrong_node)
    LinkState.NOT_PAIRED -> getString(R.string.link_not_paired)
}

fun Context.cueText(cue: Cue): String = getString(
    when (cue) {
        Cue.FASTER -> R.string.cue_faster
        Cue.SLOWER -> R.string.cue_slower
        Cue.HOLD -> R.string.cue_hold
        Cue.GO -> R.string.cue_go
        Cue.DONE -> R.string.cue_done
        Cue.REJECTED -> R.string.cue_rejected
        Cue.FAILED -> R.string.cue_failed
        Cue.INTERRUPTED -> R.string.cue_interrupted
        Cue.NO_GPS -> R.string.cue_no_gps
        Cue.NODE_LOST -> R.string.cue_node_lost
    },
)

private const val KMH_PER_MPS = 3.6

internal fun kmh(mps: Double): String = String.format(Locale.getDefault(), "%.0f", mps * KMH_PER_MPS)

internal fun kmhFine(mps: Double): String = String.format(Locale.getDefault(), "%.1f", mps * KMH_PER_MPS)

/** Units that stand at the end of the plan's names, and how they are written. */
private val units = mapOf(
    "_mps" to "m/s",
    "_dbm" to "dBm",
    "_bytes" to "bytes",
    "_bps" to "bit/s",
    "_ms" to "ms",
    "_s" to "s",
    "_m" to "m",
)

/** "speed_mps" → "speed 13.9 m/s": the plan's own words and numbers, so that they agree with the report's. */
internal fun factorText(factors: Map<String, String>): String = factors.entries.joinToString(", ") { (name, level) ->
    val unit = units.entries.firstOrNull { name.endsWith(it.key) && level.toDoubleOrNull() != null }
    val bare = name.removeSuffix(unit?.key.orEmpty()).replace('_', ' ')
    if (unit == null) "$bare $level" else "$bare $level ${unit.value}"
}
