package dev.fieldmesh.app.screen

import android.content.Context
import dev.fieldmesh.app.R
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.app.Standing
import dev.fieldmesh.core.app.TrialRow
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.Goal
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.wire.Check
import dev.fieldmesh.core.wire.Trial
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.device.VoiceState
import java.math.BigDecimal
import java.math.MathContext
import kotlin.math.roundToInt

/** What stands in the great field of the Drive screen, and the colour of its ground. */
internal class Word(val text: Int, val color: Int)

internal fun DriveState.word(): Word = when {
    staleSinceNs != null -> Word(R.string.word_stale, R.color.bad)
    phase == Phase.NO_RUN -> Word(R.string.word_no_run, R.color.text_soft)
    isStopped && !phase.isUnderWay -> Word(R.string.word_stopped, R.color.text_soft)
    goTo != null && !hasFix -> speedlessWord()
    goTo == Goal.START -> Word(R.string.word_to_start, R.color.warn)
    goTo == Goal.MARK -> Word(R.string.word_to_mark, R.color.warn)
    phase == Phase.IDLE -> Word(R.string.word_idle, R.color.text_soft)
    phase == Phase.RESTORING -> Word(R.string.word_restoring, R.color.text_soft)
    phase == Phase.DONE -> outcomeWord()
    else -> speedWord()
}

/** What to do with the speed, where one is asked for. */
private fun DriveState.speedWord() = when {
    band != null && zone == Zone.UNKNOWN -> speedlessWord()
    zone == Zone.TURNED -> Word(R.string.word_turn, R.color.bad)
    zone == Zone.BELOW -> Word(R.string.word_faster, R.color.warn)
    zone == Zone.ABOVE -> Word(R.string.word_slower, R.color.bad)
    phase == Phase.RUNNING -> Word(R.string.word_go, R.color.good)
    zone == Zone.WITHIN -> Word(R.string.word_hold, R.color.accent)
    else -> Word(R.string.word_armed, R.color.accent)
}

private fun DriveState.speedlessWord() =
    Word(if (nodeIsSlow) R.string.word_stale else R.string.word_no_fix, R.color.bad)

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
    LinkState.BAD_ANSWER -> getString(R.string.link_bad_answer)
}

/** Whether a restore would put anything back. */
internal val AppState.isRestorable: Boolean
    get() = drive.phase.isUnderWay || node?.host?.let { it.pending.isNotEmpty() || it.failed.isNotEmpty() } == true

/** Speeds as a person has chosen to see them. */
class Speeds(private val context: Context, val unit: SpeedUnit) {
    val symbol: String = context.getString(
        when (unit) {
            SpeedUnit.KMH -> R.string.speed_kmh
            SpeedUnit.MPH -> R.string.speed_mph
            SpeedUnit.MPS -> R.string.speed_mps
        },
    )

    private val spokenUnit
        get() = context.getString(
            when (unit) {
                SpeedUnit.KMH -> R.string.spoken_kmh
                SpeedUnit.MPH -> R.string.spoken_mph
                SpeedUnit.MPS -> R.string.spoken_mps
            },
        )

    /** For a glance; metres per second are too coarse without a decimal. */
    fun rough(mps: Double): String = if (unit == SpeedUnit.MPS) fine(mps) else "%.0f".format(unit.of(mps))

    fun fine(mps: Double): String = "%.1f".format(unit.of(mps))

    fun spoken(mps: Double): String = context.getString(R.string.cue_target_speed, rough(mps), spokenUnit)

    fun inWords(text: String): String = unit.inWords(text, symbol)

    /** "speed_mps" → "speed 50.0 km/h": the plan's own words and numbers but for speeds. */
    fun factors(trial: TrialRow): String = trial.factors.entries.joinToString(", ") { (name, level) ->
        val end = units.entries.firstOrNull { name.endsWith(it.key) && level.toDoubleOrNull() != null }
        val bare = name.removeSuffix(end?.key.orEmpty()).replace('_', ' ')
        val unit = end?.value ?: "m/s".takeIf { name in trial.speedFactors }
        inWords(listOfNotNull(bare, level, unit).joinToString(" "))
    }

    /** Why an attempt ended as it did, in plain words, and below them what was found; null for no reason. */
    fun reason(of: Verdict): String? {
        val reason = of.reason ?: return null
        val code = reason.substringBefore(": ")
        val plain = reasons[code]?.let(context::getString) ?: return inWords(reason)
        val rule = of.checks.firstOrNull { !it.pass }?.let(::ruleText)
        return (plain + "\n" + (rule ?: inWords(reason.removePrefix(code).removePrefix(": ")))).trim()
    }

    /** What a rule of acceptance found; null where the app does not know the rule. */
    private fun ruleText(c: Check): String? {
        val rule = rules[c.rule] ?: return null
        val words = context.getString(rule.words)
        val what = c.node?.let { context.getString(R.string.rule_on, words, it) } ?: words
        val measured = c.measured ?: return context.getString(R.string.rule_not_measured, what)
        fun told(n: Double, digits: BigDecimal) = rule.named[n]?.let(context::getString) ?: rule.number(digits)
        val found = told(measured, beside(measured, c.limit))
        return context.getString(R.string.rule_is, what, found, told(c.limit, c.limit.toBigDecimal()))
    }

    /** A measured value with four digits, or with as many more as show on which side of its limit it is. */
    private fun beside(measured: Double, limit: Double): BigDecimal {
        val whole = measured.toBigDecimal()
        return (4..16).map { whole.round(MathContext(it)) }.firstOrNull { n ->
            n.toDouble().compareTo(limit) == measured.compareTo(limit)
        } ?: whole
    }

    /** [named] are the values that have a name instead of a number. */
    private class Rule(
        val words: Int,
        val unit: String,
        val isShare: Boolean = false,
        val named: Map<Double, Int> = emptyMap(),
    ) {
        /** With as many decimals as were told. */
        fun number(told: BigDecimal): String {
            val n = (if (isShare) told.movePointRight(2) else told).stripTrailingZeros()
            return "%.${n.scale().coerceAtLeast(0)}f".format(n) + unit
        }
    }

    private companion object {
        /** Those by which attempts are judged (Acceptance in protocols/wire). */
        val rules = mapOf(
            "in_band_share_min" to Rule(R.string.in_band, " %", isShare = true),
            "fix_mode_min" to Rule(
                R.string.rule_fix_mode,
                "-D",
                named = mapOf(0.0 to R.string.fix_unknown, 1.0 to R.string.node_gps_none),
            ),
            "fix_age_ms_max" to Rule(R.string.rule_fix_age, " ms"),
            "clock_error_ms_max" to Rule(R.string.rule_clock_error, " ms"),
            "lateness_share_max" to Rule(R.string.rule_late, " %", isShare = true),
        )

        /** Units that stand at the end of the plan's names, and how they are written. */
        val units = mapOf(
            "_mps" to "m/s",
            "_dbm" to "dBm",
            "_bytes" to "bytes",
            "_bps" to "bit/s",
            "_ms" to "ms",
            "_s" to "s",
            "_m" to "m",
        )

        /** The codes that people meet (ReasonCode in protocols/wire); another is shown as it is. */
        val reasons = mapOf(
            "aborted" to R.string.reason_aborted,
            "agent_restarted" to R.string.reason_agent_restarted,
            "arm_failed" to R.string.reason_arm_failed,
            "clock" to R.string.reason_clock,
            "edge" to R.string.reason_edge,
            "firewall" to R.string.reason_firewall,
            "gate_timeout" to R.string.reason_gate_timeout,
            "generator" to R.string.reason_generator,
            "go_unanswered" to R.string.reason_go_unanswered,
            "gps" to R.string.reason_gps,
            "lateness" to R.string.reason_lateness,
            "misrouted" to R.string.reason_misrouted,
            "node_away" to R.string.reason_node_away,
            "radio_gone" to R.string.reason_radio_gone,
            "routing_daemon" to R.string.reason_routing_daemon,
            "routing_not_ready" to R.string.reason_routing_not_ready,
            "speed" to R.string.reason_speed,
            "stalled" to R.string.reason_stalled,
        )
    }
}

/** What to do next where there is nothing to show. */
internal fun Context.nextStep(link: LinkState): String = getString(
    when (link) {
        LinkState.UNPAIRED -> R.string.next_pair
        LinkState.CONNECTING -> R.string.next_connecting
        LinkState.UP -> R.string.next_run
        LinkState.LOST -> R.string.next_lost
        LinkState.WRONG_NODE -> R.string.next_wrong_node
        LinkState.NOT_PAIRED -> R.string.next_not_paired
        LinkState.BAD_ANSWER -> R.string.next_bad_answer
    },
)

/** A time that is only roughly known. */
internal fun duration(seconds: Double): String {
    val minutes = (seconds / 60).roundToInt().coerceAtLeast(if (seconds > 0) 1 else 0)
    return if (minutes < 60) "$minutes min" else "%d h %02d min".format(minutes / 60, minutes % 60)
}

/** With no line's end between a number and its unit, or within a unit. */
internal fun String.unbroken(): String = replace(BEFORE_UNIT, "\u00A0").replace(IN_UNIT, "/\u2060")

private val BEFORE_UNIT = Regex("""(?<=\d) (?=(?:km/h|mph|m/s|Mbit/s|kbit/s|dBm|%|ms|s|m)(?:\W|$))""")

private val IN_UNIT = Regex("""(?<=m|bit)/(?=[hs]\b)""")

/** A throughput; one that is small is not rounded to nothing. */
internal fun Context.bitRate(bps: Double): String = if (bps > 0 && bps < 1e5) {
    getString(R.string.kilobits, bps / 1e3)
} else {
    getString(R.string.megabits, bps / 1e6)
}

/** What the phone's voice lacks, and what to do about it; null for nothing. */
internal fun Context.voiceText(voice: VoiceState): String? = when (voice) {
    VoiceState.NO_ENGINE -> getString(R.string.voice_none)
    VoiceState.NO_LANGUAGE -> getString(R.string.voice_no_language)
    VoiceState.STARTING, VoiceState.READY -> null
}

/** What is said of a cue; null when it has nothing to say any more. */
fun Context.cueText(cue: Cue, state: AppState, unit: SpeedUnit): String? {
    val d = state.drive
    return when (cue) {
        Cue.TARGET -> state.trial?.let { getString(R.string.cue_target, it.number, manner(it, unit)) }
        Cue.DISTANCE -> d.toGateM?.takeIf { it > 0 }?.let { getString(R.string.cue_distance, it.roundToInt()) }
        Cue.COUNTDOWN -> d.remainingS?.takeIf { it >= 1 }?.let { getString(R.string.cue_countdown, it.roundToInt()) }
        Cue.TO_START -> d.goTo?.let { getString(if (it == Goal.MARK) R.string.cue_to_mark else R.string.cue_to_start) }
        Cue.DONE, Cue.REJECTED, Cue.FAILED, Cue.INTERRUPTED -> ended(plainCues.getValue(cue), state, unit)
        else -> getString(plainCues.getValue(cue))
    }
}

private val plainCues = mapOf(
    Cue.FASTER to R.string.cue_faster,
    Cue.SLOWER to R.string.cue_slower,
    Cue.HOLD to R.string.cue_hold,
    Cue.TURN to R.string.cue_turn,
    Cue.GO to R.string.cue_go,
    Cue.DONE to R.string.cue_done,
    Cue.REJECTED to R.string.cue_rejected,
    Cue.FAILED to R.string.cue_failed,
    Cue.INTERRUPTED to R.string.cue_interrupted,
    Cue.NO_GPS to R.string.cue_no_gps,
    Cue.NODE_LOST to R.string.cue_node_lost,
    Cue.STOPPED to R.string.cue_stopped,
)

/** That a trial is over, whether it is driven again, and what comes next. */
private fun Context.ended(how: Int, state: AppState, unit: SpeedUnit): String {
    val trial = state.campaign?.rows?.find { it.number == state.drive.over?.trial }
    val again = when {
        trial == null || trial.standing == Standing.ACCEPTED -> null
        !trial.isOpen -> getString(R.string.cue_given_up)
        else -> getString(R.string.cue_again).takeIf { trial.number == state.next?.number }
    }
    val then = state.next?.let { getString(R.string.cue_next, manner(it, unit)) }
        ?: getString(R.string.cue_nothing_left).takeIf { state.campaign?.isOver == true }
    return listOfNotNull(getString(how), again, then).joinToString(", ")
}

/** Whether its car drives as it likes. */
private val Trial.mayDrive get() = car != null && course.kind == "none"

/** How a trial is driven: its speed and its direction. */
private fun Context.manner(trial: Trial, unit: SpeedUnit): String = listOfNotNull(
    trial.speedMps?.takeIf { it > 0 }?.let(Speeds(this, unit)::spoken)
        ?: getString(if (trial.mayDrive) R.string.cue_any_speed else R.string.cue_standing),
    when (trial.direction) {
        "outbound" -> getString(R.string.direction_outbound)
        "inbound" -> getString(R.string.direction_inbound)
        else -> null
    },
).joinToString(", ")
