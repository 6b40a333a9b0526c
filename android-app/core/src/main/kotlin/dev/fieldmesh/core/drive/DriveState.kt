package dev.fieldmesh.core.drive

import dev.fieldmesh.core.cue.Band
import dev.fieldmesh.core.cue.Zone
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.Verdict

/** Where the app stands with the node. */
enum class LinkState { UNPAIRED, CONNECTING, UP, LOST, WRONG_NODE, NOT_PAIRED, BAD_ANSWER }

/** Whose receiver a speed comes from. The gate goes by the node's. */
enum class SpeedSource { NODE, PHONE }

/** Whose frames a signal is of: the other nodes', or those of the access point that the node's phone is with. */
enum class SignalSource { NODES, ACCESS_POINT }

/** What the present trial is at, as the driver needs to know it. */
enum class Phase {
    /** Nothing is known of a run: no node, or no run on it. */
    NO_RUN,

    /** Between trials. */
    IDLE,

    /** The node waits for the gate: bring the car to its speed. */
    ARMED,

    /** The measuring window is open: hold the speed. */
    RUNNING,

    /** The node puts the trial's changes back. */
    RESTORING,

    /** The last attempt is over and nothing newer has begun. */
    DONE,
    ;

    /** Whether a node is changed for the trial, and somebody may be driving. */
    val isUnderWay get() = this == ARMED || this == RUNNING || this == RESTORING
}

/** Where a car is to stand before its window may open: at its course's start, or parked at a mark. */
enum class Goal { START, MARK }

/** A value at a moment of the phone's boot clock, for a small chart. */
data class Point(val bootNs: Long, val value: Double)

/** All that the Drive screen shows, and all that the cues go by. What is unknown is null. */
data class DriveState(
    val link: LinkState = LinkState.UNPAIRED,
    val phase: Phase = Phase.NO_RUN,
    /** The node has not been heard since; what is shown of the trial is of then. */
    val staleSinceNs: Long? = null,
    val key: TrialKey? = null,
    val trialsTotal: Int? = null,
    val band: Band? = null,
    val speedMps: Double? = null,
    val speedSource: SpeedSource? = null,
    val zone: Zone = Zone.UNKNOWN,
    /** There is no speed because the node, whose receiver had it, tells nothing new. */
    val nodeIsSlow: Boolean = false,
    val hasFix: Boolean = false,
    val trackDeg: Double? = null,
    val wantedTrackDeg: Double? = null,
    val toGateM: Double? = null,
    /** How long the speed has been in the band. */
    val inBandS: Double? = null,
    /** How much of that the gate asks for. */
    val holdS: Double? = null,
    val remainingS: Double? = null,
    val durationS: Double? = null,
    /** What the node waits for, in its own words. */
    val detail: String? = null,
    val verdict: Verdict? = null,
    /** Null when the car has stood there, or need not. */
    val goTo: Goal? = null,
    /** Trials are open, and the run was paused or ended: none is driven until a controller takes it up. */
    val isStopped: Boolean = false,
    /** The attempt whose end was told last. */
    val over: TrialKey? = null,
    val throughput: List<Point> = emptyList(),
    val signal: List<Point> = emptyList(),
    /** Of all of [signal]. */
    val signalSource: SignalSource? = null,
    /** Of how many peers the newest of [signal] is the strongest. */
    val signalPeers: Int = 1,
)
