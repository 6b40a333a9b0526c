package dev.fieldmesh.core.cue

/** What is said to the driver. The words are in the app's resources. */
enum class Cue {
    FASTER,
    SLOWER,
    HOLD,
    TURN,
    GO,
    DONE,
    REJECTED,
    FAILED,
    INTERRUPTED,
    NO_GPS,
    NODE_LOST,

    /** A trial is armed: what speed it asks for, and which way to drive. */
    TARGET,

    /** So far to the gate. */
    DISTANCE,

    /** So long until the window closes. */
    COUNTDOWN,

    /** The car must stand at its start before the window may open. */
    TO_START,

    /** Trials are open, and the run was paused or ended. */
    STOPPED,
    ;

    /** Said once when it happens; the others follow the speed. */
    val isEvent get() = this >= GO
}

/** Where a speed lies about a band. */
enum class Zone {
    UNKNOWN,
    BELOW,
    WITHIN,
    ABOVE,

    /** Whatever the speed: the car drives the other way. */
    TURNED,
}

/** The speed that a trial asks for: within [halfWidthMps] about [targetMps]. */
data class Band(val targetMps: Double, val halfWidthMps: Double) {
    val lowMps get() = targetMps - halfWidthMps
    val highMps get() = targetMps + halfWidthMps

    fun zone(speedMps: Double?): Zone = when {
        speedMps == null -> Zone.UNKNOWN
        speedMps < lowMps -> Zone.BELOW
        speedMps > highMps -> Zone.ABOVE
        else -> Zone.WITHIN
    }
}

/** Tells when a figure that falls passes one of its marks, each once. */
internal class Milestones(private vararg val marks: Double) {
    private var last: Double? = null

    fun passed(value: Double?): Boolean {
        val before = last
        last = value
        return before != null && value != null && marks.any { value <= it && before > it }
    }
}

/**
 * Decides when to say what. Two cues are never closer than [MIN_GAP_NS]: a
 * driver who is talked at stops listening. Something that happened waits for
 * its turn and comes before the speed; a speed cue is never said late, and
 * never one that the speed no longer asks for. The target is long, and no speed
 * cue cuts it off.
 *
 * Time comes in as an argument. Not safe for several threads.
 */
class CueLogic {
    private val waiting = ArrayDeque<Cue>()
    private var said: Cue? = null
    private var saidNs = 0L
    private var saidZone: Zone? = null
    private var zoneSaidNs = 0L

    /** Something happened. Only the newest few matter: a cue of long ago confuses. */
    fun happened(event: Cue) {
        require(event.isEvent) { "$event follows the speed" }
        if (waiting.lastOrNull() == event) return
        waiting.addLast(event)
        if (waiting.size > MOST_WAITING) waiting.removeFirst()
    }

    /**
     * What to say now, if anything. [zone] is absent while no speed is asked
     * for; then the next trial's first cue is said again.
     */
    fun next(nowNs: Long, zone: Zone?): Cue? {
        if (zone == null) saidZone = null
        if (isSpeaking(nowNs, MIN_GAP_NS)) return null
        val cue = waiting.removeFirstOrNull() ?: zone?.let { ofSpeed(nowNs, it) } ?: return null
        said = cue
        saidNs = nowNs
        return cue
    }

    private fun isSpeaking(nowNs: Long, forNs: Long) = said != null && nowNs - saidNs < forNs

    private fun ofSpeed(nowNs: Long, zone: Zone): Cue? {
        if (said == Cue.TARGET && isSpeaking(nowNs, TARGET_NS)) return null
        val cue = when (zone) {
            Zone.BELOW -> Cue.FASTER
            Zone.ABOVE -> Cue.SLOWER
            Zone.WITHIN -> Cue.HOLD
            Zone.TURNED -> Cue.TURN
            Zone.UNKNOWN -> return null
        }
        val same = zone == saidZone
        // In the band silence is the best sign; outside it a word now and then helps. Turning takes its time.
        if (same && (zone in SAID_ONCE || nowNs - zoneSaidNs < REPEAT_NS)) return null
        saidZone = zone
        zoneSaidNs = nowNs
        return cue
    }

    companion object {
        const val MIN_GAP_NS = 2_000_000_000L
        const val REPEAT_NS = 6_000_000_000L

        /** As long as it takes to speak a target with its direction. */
        const val TARGET_NS = 5_000_000_000L
        private const val MOST_WAITING = 3
        private val SAID_ONCE = setOf(Zone.WITHIN, Zone.TURNED)
    }
}
