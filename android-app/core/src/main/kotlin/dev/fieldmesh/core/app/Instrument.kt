package dev.fieldmesh.core.app

import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.cue.CueLogic
import dev.fieldmesh.core.drive.DriveMachine
import dev.fieldmesh.core.drive.DriveState
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.gps.GAP_MS
import dev.fieldmesh.core.gps.SpeedFilter
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.NodeStatus
import dev.fieldmesh.core.wire.Note
import dev.fieldmesh.core.wire.Schedule
import dev.fieldmesh.core.wire.Trial
import dev.fieldmesh.core.wire.WireError
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow

/** All that the screens show. */
data class AppState(
    val node: NodeStatus? = null,
    val drive: DriveState = DriveState(),
    val campaign: CampaignState? = null,
    val track: TrackState = TrackState(),
    /** The trial under way, or the one that was last. */
    val trial: Trial? = null,
    /** What is to be driven after it, or now when nothing is under way. */
    val next: Trial? = null,
    /** When [node] came. */
    val nodeNs: Long? = null,
    /** How old [node] is, when it is not of the present: it came long ago, or the node is not heard any more. */
    val nodeOldS: Long? = null,
    /** Why the node does not take this phone's GPS; null when it does, or has not said. */
    val gpsRefusal: WireError? = null,
) {
    /**
     * What a person sees now, at [fix]; of the trial under way, if there is one, only while the node is heard: it may
     * be over by now.
     */
    fun mark(id: String, text: String, fix: Fix?): Note {
        val key = drive.key.takeIf { drive.phase.isUnderWay && drive.staleSinceNs == null }
        return Note(id, MARK, text, null, campaign?.run, key?.trial, key?.attempt, fix?.latDeg, fix?.lonDeg)
    }
}

/**
 * The instrument as a whole: takes what the node, the receiver and the people
 * tell, and makes the screens' state and the cues of it. It outlives every
 * screen. Called from one thread; the state may be read from any.
 */
class Instrument(private val nowNs: () -> Long, private val say: (Cue, AppState) -> Unit) {
    private val machine = DriveMachine()
    private val cues = CueLogic()
    private val shown = MutableStateFlow(AppState())
    private var node: NodeStatus? = null
    private var nodeNs: Long? = null
    private var schedule: Schedule? = null
    private var view: CampaignView? = null
    private var viewNs = 0L
    private var track = TrackState()
    private var placedNs: Long? = null // when the receiver told a place last
    private var gpsRefusal: WireError? = null

    val state: StateFlow<AppState> = shown.asStateFlow()

    fun unpaired() {
        node = null
        nodeNs = null
        gpsRefusal = null
        forgetRun()
        machine.onLink(LinkState.UNPAIRED, nowNs())
        refresh()
    }

    fun connecting() {
        gpsRefusal = null
        machine.onLink(LinkState.CONNECTING, nowNs())
        refresh()
    }

    fun heard(what: Heard) {
        val now = nowNs()
        if (what !is Heard.Lost) machine.onLink(LinkState.UP, now)
        when (what) {
            is Heard.Status -> {
                node = what.status
                nodeNs = now
            }
            is Heard.Plan -> plan(what.schedule)
            is Heard.View -> {
                view = what.view
                viewNs = now
                machine.onView(what.view, now)
            }
            is Heard.Signal -> machine.onSignal(what.dbm, what.source, now, what.peers)
            is Heard.NoRun -> {
                forgetRun()
                machine.onNoRun()
            }
            is Heard.Lost -> machine.onLink(linkState(what.why), now)
        }
        refresh()
    }

    fun fix(fix: Fix) {
        machine.onFix(fix)
        if (fix.hasPosition) {
            track = track.with(fix, throughputBps(), afterGap = placedNs?.let { fix.bootNs - it > GAP_NS } == true)
            placedNs = fix.bootNs
        }
        refresh()
    }

    /** What the receiver has now; the last figure of a node that is silent says nothing of here. */
    private fun throughputBps(): Double? = view?.live?.throughputBps.takeIf {
        shown.value.drive.link == LinkState.UP && nowNs() - viewNs <= SpeedFilter.STALE_NS
    }

    /** The node has taken a fix of this phone, or says why it will have none. */
    fun pushed(refusal: WireError?) {
        gpsRefusal = refusal
        machine.onPush(refusal == null, nowNs())
        refresh()
    }

    fun mark(mark: Mark) {
        track = track.copy(marks = track.marks.filter { it.id != mark.id } + mark)
        refresh()
    }

    /** Brings everything that depends on the time up to date; to be called a few times a second. */
    fun refresh() {
        val now = nowNs()
        val drive = machine.state(now)
        machine.takeEvents().forEach(cues::happened)
        val campaign = campaign()
        val trial = trial(drive.key?.trial)
        val next = trial(campaign?.next?.number)
        val old = nodeOldS(drive.link, now)
        val shownTrack = track.copy(peers = peers(now), isOld = placedNs?.let { now - it > GAP_NS } == true)
        val newest = AppState(node, drive, campaign, shownTrack, trial, next, nodeNs, old, gpsRefusal)
        shown.value = newest
        cues.next(now, drive.zone.takeIf { drive.band != null && drive.staleSinceNs == null })?.let { say(it, newest) }
    }

    private fun nodeOldS(link: LinkState, nowNs: Long): Long? {
        val ageNs = nowNs - (nodeNs ?: return null)
        return (ageNs / 1_000_000_000).takeIf { link != LinkState.UP || ageNs > NODE_FRESH_NS }
    }

    private fun trial(number: Int?): Trial? = schedule?.trials?.find { it.number == number }

    /** Their ages grow while nothing is heard; after a while they say nothing any more. */
    private fun peers(nowNs: Long): List<Peer> = view?.places.orEmpty()
        .map { Peer(it.node, it.latDeg, it.lonDeg, (it.ageMs / 1000 + (nowNs - viewNs) / 1e9).toLong()) }
        .filter { it.ageS <= PEER_KEPT_S }

    private fun plan(newest: Schedule) {
        if (newest.run != schedule?.run) track = TrackState(marks = track.marks)
        schedule = newest
        machine.onSchedule(newest)
        val course = newest.trials.firstOrNull()?.course
        track = track.copy(siteLatDeg = course?.siteLatDeg, siteLonDeg = course?.siteLonDeg)
    }

    private fun forgetRun() {
        schedule = null
        view = null
    }

    private fun campaign(): CampaignState? {
        val s = schedule ?: return null
        val v = view?.takeIf { it.run == s.run } ?: return null
        return CampaignState.of(s, v)
    }

    private fun linkState(why: AgentException) = when (why) {
        is AgentException.WrongNode -> LinkState.WRONG_NODE
        is AgentException.NotPaired -> LinkState.NOT_PAIRED
        is AgentException.BadAnswer -> LinkState.BAD_ANSWER
        else -> LinkState.LOST
    }

    private companion object {
        /** A status comes every two seconds. */
        const val NODE_FRESH_NS = 5_000_000_000L

        /** A silent receiver has lost its fix after [GAP_MS], and a fix may be told a second late. */
        const val GAP_NS = (GAP_MS + 1000) * 1_000_000

        /** As long as the nodes keep them. */
        const val PEER_KEPT_S = 600
    }
}
